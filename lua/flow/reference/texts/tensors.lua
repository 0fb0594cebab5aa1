-- tensors.lua: what flow.help says of tensors, operations, variables and gradients: see reference/texts.lua for the form.
return [==[
strings:totable: A tensor of strings as plain lists.
  print(flow.tensor({ "a", "b" }):totable()[2])      --> b
strings:item: The one string that there is.
  print(flow.tensor({ "a" }):item())      --> a
strings:reshape: The same strings in another shape; one size may be -1.
  print(flow.tensor({ "a", "b" }):reshape({ -1, 1 })[2][1])      --> b
strings:expand_dims: The same strings with an axis of size 1 more.
  print(#flow.tensor({ "a", "b" }):expand_dims(1))      --> 1
strings:squeeze: The same strings without an axis of size 1.
  print(flow.tensor({ { "a" }, { "b" } }):squeeze(-1)[2])      --> b
strings:eq: Which strings are equal to another one, or to those of another tensor.
  print(flow.tensor({ "ann", "bob" }):eq("bob"))
strings:ne: Which strings differ from another one, or from those of another tensor.
  print(flow.tensor({ "ann", "bob" }):ne("bob"))
strings:to_tensor: Parts of texts, with another text where shorter rows were filled up.
  print(flow.strings.split({ "a b", "c" }):to_tensor("-")[2][2])      --> -
flow.tensor: A tensor of a number, nested lists, an array of the FFI or another tensor; float32 unless dtype says otherwise.
  print(flow.tensor { { 1, 2 }, { 3, 4 } })
  print(flow.tensor({ 1, 2 }, { dtype = "int32" }).dtype)
flow.zeros: A tensor of zeros in a shape, a list or several numbers.
  print(flow.zeros { 2, 3 })
flow.ones: A tensor of ones in a shape, a list or several numbers.
  print(flow.ones(2, 3))
flow.full: A tensor in which every element is the same number.
  print(flow.full({ 2, 2 }, 7))
flow.eye: The identity matrix of n rows and, if m is given, m columns.
  print(flow.eye(3))
flow.arange: Numbers from start (0) up to, but without, stop, in steps of step (1).
  print(flow.arange(5))
  print(flow.arange(1, 2, 0.5))
flow.linspace: num numbers at equal distances from start to stop.
  print(flow.linspace(0, 1, 5))
flow.zeros_like: Zeros in the shape and dtype of another tensor.
  print(flow.zeros_like(flow.ones { 2 }))
flow.ones_like: Ones in the shape and dtype of another tensor.
  print(flow.ones_like(flow.zeros { 2 }))
flow.full_like: One number in the shape and dtype of another tensor.
  print(flow.full_like(flow.zeros { 2 }, 5))
flow.one_hot: Labels, counted from 0, as rows with a single 1.
  print(flow.one_hot(flow.tensor({ 0, 2 }, { dtype = "int32" }), 3))
flow.frombuffer: A tensor over memory that the caller keeps alive: nothing is copied.
  local owner = flow.tensor { 1, 2, 3, 4 }
  print(flow.frombuffer(owner:data(), { 2, 2 }, "float32"))
flow.is_tensor: Whether a value is a tensor.
  print(flow.is_tensor(flow.ones { 1 }))      --> true
flow.is_variable: Whether a value is a variable.
  print(flow.is_variable(flow.Variable(1)))      --> true
flow.shape: The dimensions as a list; in a traced function the first may stand for the rows of any batch.
  print(flow.shape(flow.ones { 2, 3 })[2])      --> 3
flow.isa: The instruction set of the kernels: "avx512", "avx2" or "plain".
  print(#flow.isa() > 0)      --> true
flow.cast: The tensor in another dtype; floats that do not fit into an integer become the nearest that does.
  print(flow.cast(flow.tensor { 1.7, -1.7 }, "int32"))
flow.to: Another dtype, another device, or both; what is there already comes back unchanged.
  print(flow.ones({ 2 }):to("float16").dtype)      --> float16
flow.copy: A copy with its elements one after the other in memory.
  print(flow.copy(flow.ones { 2 }))
flow.stop_gradient: The same values, through which no gradient flows.
  print(flow.stop_gradient(flow.ones { 2 }))
flow.raw_op: Any op of the library by its name, with a list of inputs and the attributes that its description names.
  print(flow.raw_op("cumsum", { flow.tensor { 1, 2, 3 } }, { axis = 1, reverse = true }))
flow.print: Prints values with a space between two of them; a function of flow.fn prints those of tensors in each run.
  flow.fn(function(x) flow.print("the mean is", x:mean()) end)(flow.tensor { 1, 3 })
flow.tidy: Calls f and releases every tensor that became garbage meanwhile; returns what f returns.
  print(flow.tidy(function() return flow.ones({ 1000 }):sum():item() end))      --> 1000
flow.isnan: Where a tensor is not a number, as bool.
  print(flow.isnan(flow.tensor { 1, 0 / 0 }))
flow.where: Elements of a where the condition is not zero, else those of b.
  print(flow.where(flow.tensor({ 1, 2, 3 }):gt(2), 10, 0))
flow.clip: Every element, but no less than low and no more than high.
  print(flow.clip(flow.tensor { 1, 5, 9 }, 2, 6))
flow.relu: max(x, 0); with negative_slope, a slope below the threshold, and with max_value, a cap.
  print(flow.relu(flow.tensor { -1, 2 }))
flow.leaky_relu: x, and negative_slope * x where x is negative.
  print(flow.leaky_relu(flow.tensor { -1, 2 }))
flow.elu: x, and alpha * (e^x - 1) where x is negative.
  print(flow.elu(flow.tensor { -1, 2 }))
flow.gelu: x times the share of a normal distribution below x; approximate computes it by tanh.
  print(flow.gelu(flow.tensor { -1, 2 }))
flow.selu: scale * elu(x) with the constants that keep mean and variance.
  print(flow.selu(flow.tensor { -1, 2 }))
flow.silu: x * sigmoid(x).
  print(flow.silu(flow.tensor { -1, 2 }))
flow.swish: x * sigmoid(x), the other name of silu.
  print(flow.swish(flow.tensor { -1, 2 }))
flow.relu6: max(x, 0), at most 6.
  print(flow.relu6(flow.tensor { -1, 2, 8 }))
flow.softsign: x / (1 + |x|).
  print(flow.softsign(flow.tensor { -1, 2 }))
flow.hard_sigmoid: 0 below -3, 1 above 3, a line between them.
  print(flow.hard_sigmoid(flow.tensor { -4, 0, 4 }))
flow.hard_silu: x * hard_sigmoid(x).
  print(flow.hard_silu(flow.tensor { -4, 0, 4 }))
flow.hard_swish: x * hard_sigmoid(x), the other name of hard_silu.
  print(flow.hard_swish(flow.tensor { -4, 0, 4 }))
flow.mish: x * tanh(softplus(x)).
  print(flow.mish(flow.tensor { -1, 2 }))
flow.exponential: e^x, the activation.
  print(flow.exponential(flow.tensor { 0, 1 }))
flow.softmax: e^x divided by the sum of e^x along an axis.
  print(flow.softmax(flow.tensor { 1, 2, 3 }))
flow.log_softmax: The logarithm of softmax, computed without overflow.
  print(flow.log_softmax(flow.tensor { 1, 2, 3 }))
flow.round: The nearest whole number, halves to the even one; or this many decimals.
  print(flow.round(flow.tensor { 1.234, 2.5 }, 1))
flow.mean: The mean over all elements, or along one or several axes, which count from 1.
  print(flow.mean(flow.tensor { { 1, 2 }, { 3, 4 } }, 1))
flow.var: The variance of the population over all elements or along axes.
  print(flow.var(flow.tensor { 1, 2, 3, 4 }))
flow.std: The standard deviation of the population over all elements or along axes.
  print(flow.std(flow.tensor { 1, 2, 3, 4 }))
flow.argmax: The position, from 1, of the largest element along an axis, or in the flattened tensor.
  print(flow.argmax(flow.tensor { 3, 9, 4 }):item())      --> 2
flow.argmin: The position, from 1, of the smallest element along an axis, or in the flattened tensor.
  print(flow.argmin(flow.tensor { 3, 9, 4 }):item())      --> 1
flow.classes: The label, from 0, of the largest element of each row: what y holds for predictions x.
  print(flow.classes(flow.tensor { { 0.1, 0.9 }, { 0.8, 0.2 } }))
flow.reshape: The same elements in another shape, in which one dimension may be -1: worked out.
  print(flow.reshape(flow.arange(6), { 2, -1 }))
flow.flatten: All elements in one row.
  print(flow.flatten(flow.ones { 2, 2 }))
flow.ensure_shape: The tensor, or an error where its shape is another one; -1 is any size.
  print(flow.ensure_shape(flow.ones { 2, 3 }, { -1, 3 }).shape[1])      --> 2
flow.expand_dims: A new axis of length 1.
  print(flow.expand_dims(flow.ones { 3 }, 1).shape[1])      --> 1
flow.squeeze: Without axes of length 1, or without the named ones.
  print(flow.squeeze(flow.ones { 1, 3 }))
flow.transpose: The axes in another order; without a list they are turned round.
  print(flow.transpose(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.permute: The axes in the order of the numbers.
  print(flow.ones({ 2, 3, 4 }):permute(3, 1, 2).shape[1])      --> 4
flow.swapaxes: Two axes exchanged.
  print(flow.swapaxes(flow.ones { 2, 3 }, 1, 2).shape[1])      --> 3
flow.broadcast_to: The tensor repeated to a larger shape.
  print(flow.broadcast_to(flow.tensor { 1, 2 }, { 2, 2 }))
flow.concat: A list of tensors one after the other along an axis that they have.
  print(flow.concat({ flow.zeros { 1, 2 }, flow.ones { 1, 2 } }, 1))
flow.stack: A list of tensors of one shape, side by side along a new axis.
  print(flow.stack { flow.tensor { 1, 2 }, flow.tensor { 3, 4 } })
flow.split: A list of equal parts along an axis, or of those between cuts.
  print(flow.split(flow.arange(6), 3)[2])
flow.unstack: The list of the elements along an axis.
  print(flow.unstack(flow.tensor { { 1, 2 }, { 3, 4 } })[2])
flow.take: The elements at positions, from 1, of an axis or of the flattened tensor.
  print(flow.take(flow.tensor { 5, 6, 7 }, { 3, 1 }))
flow.flip: The order of an axis, or of all, turned round.
  print(flow.flip(flow.tensor { 1, 2, 3 }))
flow.pad: More elements before and after each axis: widths is { { before, after }, ... }.
  print(flow.pad(flow.tensor { 1, 2 }, { { 1, 2 } }))
flow.tile: The whole tensor this often along each axis.
  print(flow.tile(flow.tensor { 1, 2 }, { 2 }))
flow.repeat_: Every element this often.
  print(flow.repeat_(flow.tensor { 1, 2 }, 2))
flow.top_k: The k largest elements along the last axis, and their positions.
  local values, positions = flow.top_k(flow.tensor { 4, 9, 2 }, 2)
  print(values, positions)
flow.matmul: The matrix product over the last two axes; transpose_a and transpose_b swap those of a factor first.
  print(flow.matmul(flow.tensor { { 1, 2 } }, flow.tensor { { 3 }, { 4 } }):item())      --> 11
flow.einsum: A product of tensors summed over the labels that the result lacks.
  print(flow.einsum("ij,jk->ik", flow.eye(2), flow.tensor { { 1, 2 }, { 3, 4 } }))
tensor:item: The number of a tensor with one element.
  print(flow.tensor(5):item())      --> 5
tensor:totable: The elements as nested lists.
  print(flow.tensor({ { 1, 2 } }):totable()[1][2])      --> 2
tensor:data: A pointer to the elements, borrowed. Read floats that others wrote with item(): LuaJIT misreads a NaN with a payload.
  print(tonumber(flow.tensor({ 7, 8 }):data()[1]))      --> 8
tensor:close: Releases the memory at once; the tensor cannot be used after it.
  flow.ones({ 10 }):close()
tensor:contiguous: The tensor with its elements one after the other in memory: itself, or a copy.
  print(flow.ones({ 2, 3 }):transpose():contiguous().shape[1])      --> 3
tensor:is_symbolic: Whether the tensor stands for values that a trace has not computed yet.
  print(flow.ones({ 1 }):is_symbolic())      --> false
flow.Variable: A tensor whose value can be assigned, and that gradients are taken for.
  local v = flow.Variable({ 1, 2 }, { name = "v" })
  v:assign_add { 1, 1 }
  print(v)
variable:value: The value as a tensor, as it is now.
  print(flow.Variable(3):value():item())      --> 3
variable:assign: Another value of the same shape.
  local v = flow.Variable { 1, 2 }
  v:assign { 3, 4 }
variable:assign_add: Adds to the value.
  local v = flow.Variable { 1, 2 }
  v:assign_add { 1, 1 }
variable:assign_sub: Subtracts from the value.
  local v = flow.Variable { 1, 2 }
  v:assign_sub { 1, 1 }
flow.custom_gradient: f with its own gradients: it returns its result, and a function that makes the arguments' of the result's.
  local clipped = flow.custom_gradient(function(x) return x * 1, function(upstream) return flow.clip(upstream, -1, 1) end end)
  local x, tape = flow.ones { 2 }, flow.GradientTape()
  tape:watch(x)
  print(tape:gradient(tape:record(function() return (clipped(x) * 5):sum() end), x):totable()[1])      --> 1
flow.GradientTape: Records what a function computes, so that gradients can be taken of it once; persistent: any number of times.
  local w = flow.Variable { 1, 2 }
  local tape = flow.GradientTape()
  local loss = tape:record(function() return (w * w):sum() end)
  print(tape:gradient(loss, w))
tape:record: Calls f(...) and records its operations; returns what f returns.
  local tape = flow.GradientTape()
  print(tape:record(function(a) return a * 2 end, flow.ones { 1 }))
tape:gradient: The gradients of target with respect to a variable, a tensor, or a list of them.
  local w = flow.Variable(3)
  local tape = flow.GradientTape()
  local y = tape:record(function() return w * w end)
  print(tape:gradient(y, w):item())      --> 6
tape:jacobian: The gradient of each element of the target with respect to each of a variable, a tensor, or a list of them.
  local w = flow.Variable { 1, 2 }
  local tape = flow.GradientTape()
  local y = tape:record(function() return w * w end)
  print(tape:jacobian(y, w)[2]:totable()[2])      --> 4
tape:batch_jacobian: The gradients of each row of the target with respect to the same row of a tensor.
  local x, tape = flow.ones { 3, 2 }, flow.GradientTape()
  tape:watch(x)
  print(tape:batch_jacobian(tape:record(function() return x * x end), x).shape[1])      --> 3
tape:watch: Lets gradients be taken for a tensor that is not a variable.
  local x, tape = flow.ones { 1 }, flow.GradientTape()
  tape:watch(x)
  print(tape:gradient(tape:record(function() return x * 5 end), x):item())      --> 5
tape:watched_variables: The trainable variables that were read while the tape recorded, each once, in the order of the first readings.
  local v, w, tape = flow.Variable(2), flow.Variable(3), flow.GradientTape()
  tape:record(function() return w * v * w end)
  print(#tape:watched_variables())      --> 2
tape:reset: Forgets what was recorded so far.
  local w, tape = flow.Variable(3), flow.GradientTape()
  local y = tape:record(function()
    local unused = w * w
    tape:reset()
    return w * 2
  end)
  print(tape:gradient(y, w):item())      --> 2
tape:stop_recording: Calls f(...) and returns its results, through which no gradient flows.
  local w, tape = flow.Variable(3), flow.GradientTape()
  local y = tape:record(function() return w * tape:stop_recording(function() return w * w end) end)
  print(tape:gradient(y, w):item())      --> 9
tape:close: Releases what was recorded.
  local tape = flow.GradientTape()
  tape:record(function() return flow.ones { 1 } end)
  tape:close()
flow.fn: A function that is traced once for each kind of argument, and then runs without Lua.
  local double = flow.fn(function(x) return x * 2 end)
  print(double(flow.ones { 2 }))
  local half = flow.fn(function(x) return x / 2 end, { input_signature = { flow.TensorSpec({ -1 }, "float32") } })
  local halves = half { 2, 4 }      -- a list becomes a tensor
fn:describe: What was traced, for people.
  local f = flow.fn(function(x) return x + 1 end)
  f(flow.ones { 2 })
  print(type(f:describe()))      --> string
fn:close: Releases the plans of a traced function.
  local f = flow.fn(function(x) return x + 1 end)
  f(flow.ones { 2 })
  f:close()
flow.random.normal: Normal random numbers.
  print(flow.random.normal({ 2, 2 }, { seed = 7 }).shape[1])      --> 2
flow.random.uniform: Random numbers from minval up to, but without, maxval.
  print(flow.random.uniform({ 2 }, { minval = 5, maxval = 6, seed = 1 }):min():item() >= 5)      --> true
flow.random.truncated_normal: Normal random numbers; those beyond two standard deviations are drawn again.
  print(flow.random.truncated_normal({ 100 }, { seed = 1 }):abs():max():item() <= 2)      --> true
flow.random.randint: Random whole numbers from minval up to, but without, maxval.
  print(flow.random.randint({ 3 }, 0, 10, { seed = 1 }).dtype)      --> int32
flow.random.permutation: The numbers 1 to n in random order: in a traced function another one in each run.
  print(#flow.random.permutation(5, { seed = 1 }))      --> 5
flow.random.shuffle: The rows of a tensor in random order: in a traced function another one in each run, in a map for each element.
  print(flow.random.shuffle(flow.arange(4), { seed = 1 }).shape[1])      --> 4
flow.random.set_seed: The seed of all that is drawn from now on: weights, dropout, shuffling.
  flow.random.set_seed(1)
flow.random.get_state: The state of the random numbers as a text, to go on from it later.
  local state = flow.random:get_state()
  flow.random:set_state(state)
flow.random.set_state: Goes on with random numbers where get_state() was called.
  local state = flow.random:get_state()
  local a = flow.random.normal { 1 }
  flow.random:set_state(state)
  print(a:item() == flow.random.normal({ 1 }):item())      --> true
flow.random.stateless_uniform: Uniform numbers that follow from a seed of two numbers, which may be a tensor of a trace.
  print(flow.random.stateless_uniform({ 3 }, { 1, 2 }).shape[1])      --> 3
flow.random.stateless_normal: Normal numbers that follow from a seed of two numbers, which may be a tensor of a trace.
  print(flow.random.stateless_normal({ 3 }, { 1, 2 }, 10, 0.1):mean():item() > 9)      --> true
flow.random.stateless_truncated_normal: The same at most two standard deviations from the mean.
  print(flow.random.stateless_truncated_normal({ 3 }, { 1, 2 }):max():item() <= 2)      --> true
flow.random.Generator.from_seed: A generator of numbers, and of seeds for the stateless functions, that follow from one seed.
  local generator = flow.random.Generator.from_seed(123)
  print(generator:normal({ 2, 2 }).shape[1])      --> 2
flow.random.Generator.from_non_deterministic_state: A generator of a fresh seed of the global ones.
  print(flow.random.Generator.from_non_deterministic_state():uniform({ 2 }).shape[1])      --> 2
flow.random.Generator.from_state: A generator that goes on where another one was.
  local generator = flow.random.Generator.from_seed(1)
  print(flow.random.Generator.from_state(generator.state):get_state().seed)      --> 1
generator.state: Where it is in its numbers, as from_state takes it.
  print(flow.random.Generator.from_seed(1).state.seed)      --> 1
generator:uniform_full_int: The next whole numbers, of all that the dtype holds.
  print(flow.random.Generator.from_seed(1):uniform_full_int({ 2 }, "int32").dtype)      --> int32
generator:make_seeds: Seeds for the stateless functions, the columns of a tensor {2, count}; in ds:map others for each element.
  local seed = flow.random.Generator.from_seed(1):make_seeds(2)[{ {}, 1 }]
  print(flow.random.stateless_uniform({ 4 }, seed).shape[1])      --> 4
generator:uniform: The next uniform numbers, from minval to below maxval.
  print(flow.random.Generator.from_seed(1):uniform({ 2 }, 0, 10, "int32").dtype)      --> int32
generator:normal: The next normal numbers.
  print(flow.random.Generator.from_seed(1):normal({ 2 }, 5, 0.1).shape[1])      --> 2
generator:truncated_normal: The next normal numbers at most two standard deviations from the mean.
  print(flow.random.Generator.from_seed(1):truncated_normal({ 2 }).shape[1])      --> 2
generator:split: A list of generators that draw other numbers than this one and than each other.
  print(#flow.random.Generator.from_seed(1):split(3))      --> 3
generator:get_state: Where it is in its numbers, as flow.train.Checkpoint keeps it.
  print(flow.random.Generator.from_seed(1):get_state().seed)      --> 1
generator:set_state: Brings it to where another one was.
  local generator = flow.random.Generator.from_seed(1)
  generator:set_state(flow.random.Generator.from_seed(2):get_state())
  print(generator.seed)      --> 2
generator:reset_from_seed: The generator as if it had just been made of this seed.
  local generator = flow.random.Generator.from_seed(1)
  generator:reset_from_seed(2)
  print(generator.seed)      --> 2
flow.strings.lower: Strings in small letters (of ASCII).
  print(flow.strings.lower("Ann"))      --> ann
flow.strings.upper: Strings in capital letters (of ASCII).
  print(flow.strings.upper { "a", "b" })
flow.strings.strip: Strings without white space at both ends.
  print(flow.strings.strip("  a b "))      --> a b
flow.strings.length: How many bytes, or characters, each string has.
  print(flow.strings.length("grün", { unit = "UTF8_CHAR" }):item())      --> 4
flow.strings.substr: Parts of strings: a number of bytes, or characters, from a position on; positions count from 1.
  print(flow.strings.substr("hello", 2, 3))      --> ell
flow.strings.split: Strings in parts, at white space or at sep; rows of different lengths are filled up with "".
  print(flow.strings.split({ "a b", "c" }).shape[2])      --> 2
flow.strings.bytes_split: Strings as their bytes.
  print(flow.strings.bytes_split("abc")[3])      --> c
flow.strings.unicode_split: Strings as their characters.
  print(flow.strings.unicode_split("grün").shape[1])      --> 4
flow.strings.join: Strings side by side as one each.
  print(flow.strings.join({ { "a", "b" }, { "c", "d" } }, { separator = "-" })[2])      --> b-d
flow.strings.reduce_join: The strings along an axis as one.
  print(flow.strings.reduce_join({ "a", "b", "c" }, { separator = " " }))      --> a b c
flow.strings.regex_replace: Strings with what matches a regular expression (of RE2) replaced.
  print(flow.strings.regex_replace("Hello, you!", "[[:punct:]]", ""))      --> Hello you
flow.strings.regex_full_match: Whether all of each string matches a regular expression.
  print(flow.strings.regex_full_match({ "a1", "b" }, "[a-z]\\d"))
flow.strings.to_number: Strings as numbers.
  print(flow.strings.to_number({ "1", "2.5" }):sum():item())      --> 3.5
flow.strings.as_string: Numbers as strings.
  print(flow.strings.as_string({ 1.5, 2 }, { precision = 1 })[2])      --> 2.0
flow.math.confusion_matrix: How often each label (rows) was predicted as each (columns).
  print(flow.math.confusion_matrix(flow.tensor { 0, 1, 1 }, flow.tensor { 0, 1, 0 }))
flow.save_npy: Writes a tensor as a .npy file, which NumPy opens.
  flow.save_npy("a.npy", flow.ones { 2 })
flow.load_npy: The tensor of a .npy file.
  flow.save_npy("a.npy", flow.ones { 2 })
  print(flow.load_npy("a.npy"))
flow.save_npz: Writes tensors by name as a .npz file, which numpy.load opens.
  flow.save_npz("a.npz", { x = flow.ones { 2 }, y = flow.zeros { 3 } })
  print(flow.load_npz("a.npz").y.shape[1])      --> 3
flow.load_npz: The tensors of a .npz file by name, or one of them.
  print(pcall(flow.load_npz, "missing.npz"))
flow.save_safetensors: Writes a table of named tensors as a .safetensors file.
  flow.save_safetensors("a.safetensors", { w = flow.ones { 2 } })
flow.load_safetensors: The tensors of a .safetensors file by name.
  flow.save_safetensors("a.safetensors", { w = flow.ones { 2 } })
  print(flow.load_safetensors("a.safetensors").w)
flow.device: Runs f with this device as the place of new tensors.
  flow.device("cpu:0", function() print(flow.ones({ 1 }).device) end)
flow.profile: Runs f and tells where the time went: a table, and with trace a file for Chrome's tracing.
  local profile = flow.profile(function() return flow.ones { 10, 10 }:matmul(flow.ones { 10, 10 }) end)
  print(profile:total("matmul") >= 0)      --> true
profile:total: The seconds of all rows of an op, of a variant of it, or of all.
  local profile = flow.profile(function() return flow.ones { 10 } + 1 end)
  print(profile:total() >= 0)      --> true
]==]
