# The syscall filters: profiles/*.seccomp → belljar-seccompc → seccomp_tables.cc → belljar_seccomp_filter, an object library
# that the plan module takes in: target_sources(belljar_plan PRIVATE $<TARGET_OBJECTS:belljar_seccomp_filter>)
add_subdirectory(${PROJECT_SOURCE_DIR}/tools/seccomp ${PROJECT_BINARY_DIR}/tools/seccomp)

set(seccomp_lists ${PROJECT_SOURCE_DIR}/profiles/kernel.seccomp ${PROJECT_SOURCE_DIR}/profiles/narrowing.seccomp)
set(seccomp_tables ${PROJECT_BINARY_DIR}/tools/seccomp/seccomp_tables.cc)

add_custom_command(OUTPUT ${seccomp_tables}
  COMMAND belljar-seccompc ${seccomp_lists} --tables ${seccomp_tables} --arch ${CMAKE_SYSTEM_PROCESSOR}
  DEPENDS belljar-seccompc ${seccomp_lists}
  COMMENT "Compiling the syscall filters" VERBATIM)

add_library(belljar_seccomp_filter OBJECT ${PROJECT_SOURCE_DIR}/src/plan/seccomp_filter.cc ${seccomp_tables})
target_include_directories(belljar_seccomp_filter PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(belljar_seccomp_filter PRIVATE belljar_flags)

# After a change of the lists: ninja syscalls-doc
add_custom_target(syscalls-doc
  COMMAND belljar-seccompc ${seccomp_lists} --markdown ${PROJECT_SOURCE_DIR}/docs/syscalls.md
  DEPENDS belljar-seccompc ${seccomp_lists} VERBATIM)

if(BELLJAR_TESTS)
  add_executable(seccomp_test
    ${PROJECT_SOURCE_DIR}/tools/seccomp/rules_test.cc
    ${PROJECT_SOURCE_DIR}/tools/seccomp/filter_test.cc
    ${PROJECT_SOURCE_DIR}/tools/seccomp/cost_test.cc
    ${PROJECT_SOURCE_DIR}/src/plan/seccomp_live_test.cc)
  target_link_libraries(seccomp_test PRIVATE
    belljar_seccomp_compiler belljar_seccomp_filter belljar_flags GTest::gtest GTest::gtest_main)
  # They read profiles/ from the checkout, which is not compiled in: another clone may use the same object files.
  gtest_discover_tests(seccomp_test TEST_PREFIX seccomp. WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES TIMEOUT 120)
endif()
