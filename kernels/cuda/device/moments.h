/* moments.h: what threads have summed of some elements, for variances and their gradients, and how two such sums become one. */
#ifndef FLOW_CUDA_DEVICE_MOMENTS_H
#define FLOW_CUDA_DEVICE_MOMENTS_H

#include "cuda/device/body.h"

/* count: how many elements. first, second: their mean and the sum of squared differences from it; or, of a gradient, two plain sums. */
typedef struct element_moments {
  double count, first, second;
} element_moments;

/* The moments of both by Chan, Golub and LeVeque's rule ("Algorithms for computing the sample variance", 1983), in which nothing cancels
 * wherever the elements are; of a gradient the sums of both. What has no elements changes nothing. */
BODY element_moments combine_moments(element_moments a, element_moments b, int gradient)
{
  element_moments both;
  both.count = a.count + b.count;
  if (gradient || both.count == 0) {
    both.first = a.first + b.first;
    both.second = a.second + b.second;
    return both;
  }
  double delta = b.first - a.first, share = b.count / both.count;
  both.first = a.first + delta * share;
  both.second = a.second + b.second + delta * delta * (a.count * share);
  return both;
}

#endif
