/* matmul_plain.h: rows of a matrix product for one element type; included by matmul.c once per type with
 *   NAME              name of the function
 *   ELEMENT           stored type
 *   SUM               type of the sums
 *   LOAD(x) STORE(s)  ELEMENT to SUM and back */

/* Rows [begin, end) of all matrices of the product, counted through: C = act(op(A) op(B) + bias). */
static void NAME(const product *p, int64_t begin, int64_t end)
{
  /* A row of B is read as it lies where B is {k, n}: the loop over columns is the inner one, over as many sums as stay in cache. */
  enum { COLUMNS = 64 };                      /* sums kept at once */
  for (int64_t row = begin; row < end; row++) {
    int64_t matrix = row / p->m, i = row % p->m;
    const ELEMENT *a = (const ELEMENT *)p->a + a_offset(p, matrix) + (p->transpose_a ? i : i * p->lda);
    const ELEMENT *b = (const ELEMENT *)p->b + b_offset(p, matrix), *bias = p->bias;
    ELEMENT *c = (ELEMENT *)p->c + c_offset(p, matrix) + i * p->ldc;
    int64_t a_step = p->transpose_a ? p->lda : 1;
    for (int64_t j0 = 0; j0 < p->n; j0 += COLUMNS) {
      int64_t columns = p->n - j0 < COLUMNS ? p->n - j0 : COLUMNS;
      SUM sum[COLUMNS];
      for (int64_t j = 0; j < columns; j++) sum[j] = 0;
      for (int64_t k = 0; k < p->k; k++) {
        SUM x = LOAD(a[k * a_step]);
        if (p->transpose_b)
          for (int64_t j = 0; j < columns; j++) sum[j] += x * LOAD(b[(j0 + j) * p->ldb + k]);
        else
          for (int64_t j = 0; j < columns; j++) sum[j] += x * LOAD(b[k * p->ldb + j0 + j]);
      }
      for (int64_t j = 0; j < columns; j++) {
        SUM y = sum[j];
        if (bias) y += LOAD(bias[j0 + j]);
        if (p->relu && (double)y < 0) y = 0;    /* NaN stays */
        c[j0 + j] = STORE(y);
      }
    }
  }
}

#undef NAME
#undef ELEMENT
#undef SUM
#undef LOAD
#undef STORE
