# Compiles through ccache where there is one; it only makes building again faster. Paths count from the checkout, so that
# what one clone has compiled another one on the same machine need not: also the debugger's, which tells a lie then.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  get_filename_component(checkout ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
  foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_BASEDIR=${checkout} CCACHE_NOHASHDIR=true ${CCACHE})
  endforeach()
endif()
