#ifndef OUTER_TYPES_H
#define OUTER_TYPES_H
typedef int outer_number;
typedef struct { int a; unsigned short b[3]; outer_number c; } outer_pair;
extern int outer_function(outer_number a);
#endif
