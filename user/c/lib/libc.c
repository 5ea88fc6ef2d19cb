/* A few functions of the C library. */

#include <tern.h>

void *memcpy(void *to, const void *from, size_t len)
{
    void *at = to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(len) : : "memory");
    return to;
}

void *memmove(void *to, const void *from, size_t len)
{
    char *target = to;
    const char *source = from;

    if (target <= source || target >= source + len)
        return memcpy(to, from, len);
    while (len-- > 0)
        *(volatile char *)(target + len) = source[len];
    return to;
}

void *memset(void *at, int value, size_t len)
{
    void *start = at;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(len) : "a"(value) : "memory");
    return start;
}

int memcmp(const void *one, const void *other, size_t len)
{
    const unsigned char *a = one, *b = other;

    for (; len > 0; a++, b++, len--)
        if (*a != *b)
            return *a - *b;
    return 0;
}

size_t strlen(const char *text)
{
    const char *end = text;

    while (*(volatile const char *)end)
        end++;
    return end - text;
}

int strcmp(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return (unsigned char)*one - (unsigned char)*other;
}

/* Output is collected, so that a line travels in few messages. */
struct line {
    char bytes[224];
    size_t len;
    int total;
};

static void flush(struct line *line)
{
    tern_write(line->bytes, line->len);
    line->len = 0;
}

static void put(struct line *line, char character)
{
    if (line->len == sizeof line->bytes)
        flush(line);
    line->bytes[line->len++] = character;
    line->total++;
}

struct field {
    int width, left, zero;
};

static void put_field(struct line *line, struct field field, const char *text, size_t len)
{
    int padding = field.width > (int)len ? field.width - (int)len : 0;

    if (field.zero && len > 0 && *text == '-') {
        put(line, *text++);
        len--;
    }
    if (!field.left)
        for (; padding > 0; padding--)
            put(line, field.zero ? '0' : ' ');
    for (; len > 0; len--)
        put(line, *text++);
    for (; padding > 0; padding--)
        put(line, ' ');
}

static void put_number(struct line *line, struct field field, uint64_t value, int negative, unsigned base,
                       const char *digits)
{
    char text[24];
    char *at = text + sizeof text;

    do
        *--at = digits[value % base];
    while ((value /= base) != 0);
    if (negative)
        *--at = '-';
    put_field(line, field, at, text + sizeof text - at);
}

int vprintf(const char *format, va_list arguments)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    struct line line = { .len = 0 };

    for (; *format; format++) {
        struct field field = { 0 };
        int is_long = 0;

        if (*format != '%') {
            put(&line, *format);
            continue;
        }
        for (format++; *format == '-' || *format == '0'; format++)
            *(*format == '-' ? &field.left : &field.zero) = 1;
        field.zero &= !field.left;
        for (; *format >= '0' && *format <= '9'; format++)
            field.width = field.width * 10 + (*format - '0');
        for (; *format == 'l' || *format == 'z'; format++)
            is_long = 1;
        switch (*format) {
        case 'd':
        case 'i': {
            int64_t value = is_long ? va_arg(arguments, int64_t) : va_arg(arguments, int);
            put_number(&line, field, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0, 10, lower);
            break;
        }
        case 'u':
        case 'x':
        case 'X': {
            uint64_t value = is_long ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned);
            put_number(&line, field, value, 0, *format == 'u' ? 10 : 16, *format == 'X' ? upper : lower);
            break;
        }
        case 'p':
            put(&line, '0');
            put(&line, 'x');
            put_number(&line, field, va_arg(arguments, uint64_t), 0, 16, lower);
            break;
        case 'c': {
            char character = (char)va_arg(arguments, int);
            put_field(&line, (struct field){ field.width, field.left, 0 }, &character, 1);
            break;
        }
        case 's': {
            const char *text = va_arg(arguments, const char *);
            put_field(&line, (struct field){ field.width, field.left, 0 }, text ? text : "(null)",
                      text ? strlen(text) : 6);
            break;
        }
        case 0:
            format--;
            break;
        default:
            put(&line, *format);
        }
    }
    flush(&line);
    return line.total;
}

int printf(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int total = vprintf(format, arguments);
    va_end(arguments);
    return total;
}

int putchar(int character)
{
    char byte = (char)character;

    tern_write(&byte, 1);
    return (unsigned char)character;
}

int puts(const char *text)
{
    return printf("%s\n", text);
}
