# cmake -DOUTPUT=file.cc "-DPROFILES=a.toml;b.toml" -P embed_profiles.cmake
# Writes the profiles as C++ string literals, so that the program needs no files of its own at run time.
set(source "// Made from profiles/*.toml by embed_profiles.cmake; edit those.\n#include <array>\n#include \"policy/profile.h\"\n")
string(APPEND source "namespace belljar::policy {\n")
set(rows "")
foreach(profile IN LISTS PROFILES)
  get_filename_component(name ${profile} NAME_WE)
  file(READ ${profile} text)
  string(APPEND rows "    {\"${name}\", R\"belljar(${text})belljar\"},\n")
endforeach()
string(APPEND source "static constexpr auto kProfiles = std::to_array<NamedProfile>({\n${rows}});\n")
string(APPEND source "std::span<const NamedProfile> Profiles() { return kProfiles; }\n}  // namespace belljar::policy\n")
file(WRITE ${OUTPUT} "${source}")
