/* composites.h: the names of the activations that flow_activate knows. */
#ifndef FLOW_AUTODIFF_COMPOSITES_H
#define FLOW_AUTODIFF_COMPOSITES_H

const char *flow_activation_name(int index);      /* NULL past the last one */

#endif
