# Outside libraries. CONTRIBUTING.md says why each is here; tools/packages.txt names its Debian package.
find_path(FMT_INCLUDE_DIR fmt/format-inl.h REQUIRED)
add_library(belljar_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_library.cc)
target_include_directories(belljar_fmt SYSTEM PUBLIC $<BUILD_INTERFACE:${FMT_INCLUDE_DIR}>)
target_compile_options(belljar_fmt PRIVATE -ffunction-sections -fdata-sections)
add_library(fmt::fmt ALIAS belljar_fmt)
set_property(GLOBAL APPEND PROPERTY BELLJAR_MODULES belljar_fmt)

# Debian's own target for toml++ is the shared library; the headers alone do the same.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED GLOBAL)
target_include_directories(tomlplusplus::tomlplusplus SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})

find_package(CLI11 REQUIRED)
if(BELLJAR_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
