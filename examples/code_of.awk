# Writes the C blocks of a page, one after another, to the file `out`. What a compiler says about
# them then names the page and its line.
/^```c$/ { inside = 1; printf "#line %d \"%s\"\n", NR + 1, FILENAME > out; next }
/^```/   { inside = 0 }
inside   { print > out }
