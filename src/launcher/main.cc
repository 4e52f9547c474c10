// belljar-launcher: started by the library with the descriptors that launcher/protocol.h names; not for people. Also
// init of sandboxes whose walls another program has made, which starts it with those of plan::kPassedFrom.
#include <string.h>

#include "jail/run_child.h"
#include "launcher/serve.h"

int main(int argc, char** argv) {
  // All that it was started with: it has no environment.
  const belljar::jail::CallerStrings arguments = {argv[0], argv[argc - 1] + strlen(argv[argc - 1])};
  if (const int plan = belljar::jail::InsideNumber(argc, argv); plan >= 0) belljar::jail::RunInside(plan, arguments);
  belljar::launcher::Serve(arguments);
}
