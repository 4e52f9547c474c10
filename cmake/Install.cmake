# cmake --install: the program, the headers, one library with all modules in it, and files for pkg-config and CMake.
# The library needs nothing but libc, libstdc++ and threads: the outside libraries it uses are compiled in.
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)

get_property(modules GLOBAL PROPERTY BELLJAR_MODULES)
set(objects)
foreach(module ${modules})
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
  # That leaves out what the module itself took in from an object library.
  get_target_property(taken ${module} SOURCES)
  list(FILTER taken INCLUDE REGEX TARGET_OBJECTS)
  list(APPEND objects ${taken})
endforeach()
add_library(belljar_library STATIC ${objects})
set_target_properties(belljar_library PROPERTIES OUTPUT_NAME belljar EXPORT_NAME belljar LINKER_LANGUAGE CXX)
target_include_directories(belljar_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(belljar_library INTERFACE cxx_std_23)
target_link_libraries(belljar_library INTERFACE Threads::Threads)

install(TARGETS belljar_library EXPORT BelljarTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/belljar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY profiles/ DESTINATION ${CMAKE_INSTALL_DATADIR}/belljar/profiles)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Belljar)
install(EXPORT BelljarTargets NAMESPACE Belljar:: DESTINATION ${package_dir})
configure_package_config_file(cmake/BelljarConfig.cmake.in ${PROJECT_BINARY_DIR}/BelljarConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BelljarConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/BelljarConfig.cmake ${PROJECT_BINARY_DIR}/BelljarConfigVersion.cmake
  DESTINATION ${package_dir})

configure_file(cmake/belljar.pc.in ${PROJECT_BINARY_DIR}/belljar.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/belljar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
