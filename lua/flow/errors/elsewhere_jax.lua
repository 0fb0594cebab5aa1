-- elsewhere_jax.lua: where to find what scripts for JAX and NumPy have under another name; elsewhere.lua takes it in.

local GRADIENT = "local tape = flow.GradientTape(); tape:watch(x); local y = tape:record(f, x); tape:gradient(y, x)"
local JACOBIAN = "tape:watch(x); local y = tape:record(f, x); tape:jacobian(y, x), or tape:batch_jacobian(y, x)"
local HESSIAN = "tape:jacobian(gradient, x) of a gradient that another tape took while this one recorded"
local CUSTOM = "flow.custom_gradient(f), where f returns its result and a function for the gradients of its inputs"
local REPLICAS = "strategy:run(f, arguments) calls f on each replica of flow.distribute.MirroredStrategy()"
local TREE = "flow.keras.tree.map_structure(f, structure) and flatten(structure)"
local LOOPS = "flow.scan, flow.fori_loop, flow.while_loop, flow.cond and flow.switch run in plans"
local ARRAYS = "arrays are tensors, functions of them are in flow itself: flow.tensor { { 1, 2 } }, flow.zeros { 2, 3 }, flow.sum(x, 1)"
local READY = "calls return when their numbers are there"
local KEYS = "draws take { seed = n }; flow.random.SeedGenerator(n) and flow.random.Generator.from_seed(n) give many"
local CALLS_LUA = "plans do not call Lua: return the tensor from the traced function and go on with it there; "
  .. "without flow.fn, and with compile { run_eagerly = true }, Lua runs at each step"

return {
  flow = {
    grad = GRADIENT, value_and_grad = GRADIENT, vjp = GRADIENT .. ", with output_gradients", linearize = "flow.jvp(f, inputs, tangents)",
    jacfwd = JACOBIAN, jacrev = JACOBIAN, jacobian = JACOBIAN, hessian = HESSIAN, hvp = HESSIAN,
    vmap = "flow.vectorized_map(f, xs)", pmap = REPLICAS, custom_vjp = CUSTOM, custom_jvp = CUSTOM,
    autodiff = "flow.jvp(f, inputs, tangents) is tf.autodiff.ForwardAccumulator", ForwardAccumulator = "flow.jvp(f, inputs, tangents)",
    checkpoint = "activations of the forward pass are kept; gradient_accumulation_steps of optimizers lets batches be smaller",
    tree_map = TREE, tree_util = TREE, tree = TREE, lax = LOOPS, numpy = ARRAYS, np = ARRAYS, jnp = ARRAYS, ndarray = ARRAYS,
    device_put = "flow.device(name, f) runs f there, x:to(\"gpu:0\") moves a tensor", block_until_ready = READY,
    pure_callback = CALLS_LUA, io_callback = CALLS_LUA, named_scope = "layers and variables take name",
  },
  ["flow.random"] = { PRNGKey = KEYS, key = KEYS, default_rng = KEYS, RandomState = KEYS,
    choice = "flow.random.permutation(n), or flow.random.randint", seed = "flow.set_random_seed(seed)",
    bernoulli = "flow.random.uniform(shape):lt(p)", rand = "flow.random.uniform(shape)" },
  tensor = {
    block_until_ready = READY, at = "x[i] = value eagerly; in a trace flow.scatter_update(x, positions, values)",
    copy_to_host_async = READY,
  },
}
