// belljar-launcher: started by the library with the descriptors that launcher/protocol.h names; not for people.
#include <string.h>

#include "launcher/serve.h"

int main(int /*argc*/, char** argv) {
  // All that it was started with: it has no environment.
  belljar::launcher::Serve({argv[0], argv[0] + strlen(argv[0])});
}
