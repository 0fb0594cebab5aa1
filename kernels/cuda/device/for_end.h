/* for_end.h: takes back what for_float32.h, for_half_floats.h, for_other.h and for_integers.h define. */
#undef NUMBER
#undef NUMBER_DTYPE
#undef IN_FLOAT
#undef NAME
#undef IS_NAN
#undef LOAD
#undef STORE
#undef LOAD_FOUR
#undef STORE_FOUR
#undef EXP
#undef LOG
#undef SQRT
#undef ABS
#undef ADD_PRODUCT
