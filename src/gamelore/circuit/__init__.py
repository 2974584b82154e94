"""From ground programs to machine code: gates, tapes and LLVM code for 512 positions at a time; random playouts."""
