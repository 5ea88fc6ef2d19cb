/* What the parts of this program share. */
#ifndef CHECK_H
#define CHECK_H

/* Notes a failure, with the place and the expression. */
void check_at(int is_so, const char *file, int line, const char *what);
#define CHECK(what) check_at((what), __FILE_NAME__, __LINE__, #what)

void strings(void);
void numbers(void);
void formats(void);
void memory(void);
void utilities(void);
void clocks(void);
void threads(void);
void locks(void);
void conditions(void);
void storage(void);
void crowded(void);

/* Whether what is typed arrives as it should; the harness types it. */
void input(void);

#endif
