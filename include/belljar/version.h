// belljar/version.h: the version this header belongs to.
#pragma once

#define BELLJAR_VERSION "0.1.0"
