# How everything is compiled and linked. Warnings are errors and hardening is on in every build; tests/lint checks the
# finished program with readelf.
add_library(belljar_flags INTERFACE)
target_compile_options(belljar_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wno-missing-field-initializers
  -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
  -ffunction-sections -fdata-sections)
target_compile_definitions(belljar_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_link_options(belljar_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--gc-sections)

# -O3 makes the program larger and the build slower, and nothing here is a hot loop.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

if(BELLJAR_SANITIZE)
  add_compile_options(-fsanitize=${BELLJAR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BELLJAR_SANITIZE})
  # Sanitizer runtimes exist only as shared libraries.
  set(BELLJAR_STATIC OFF)
else()
  # Both would hide mistakes from the sanitizers: fortified calls go by other names, and zeroed variables look set.
  target_compile_options(belljar_flags INTERFACE -ftrivial-auto-var-init=zero)
  target_compile_definitions(belljar_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()

include(cmake/Ccache.cmake)
find_program(MOLD mold)  # Links faster; not needed either.
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
