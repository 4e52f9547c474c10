#include "work.h"
unsigned Fib(unsigned n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
