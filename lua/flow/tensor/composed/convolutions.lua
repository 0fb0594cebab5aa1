-- convolutions.lua: convolutions and pooling of sequences, pictures and volumes, and the patches that they go over: inputs {batch, ...,
-- channels}, kernels {..., channels in, channels out}. Sequences are pictures of one row; of a volume each plane is a picture.

local errors = require "flow.errors"
local tools = require "flow.tensor.composed.tools"
local windows = require "flow.tensor.composed.windows"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, operand, floats = tools.ops, tools.operand, tools.floats
local per_axis, geometry = windows.per_axis, windows.geometry

local STRIDES = "strides?: number|list, padding: 'valid'|'same' = 'valid'"
local FORMAT = "data_format: 'channels_last'|'channels_first' = 'channels_last'"
local WINDOW = STRIDES .. ", " .. FORMAT

-- The channels moved to the last axis; back(y) gives y's place to them.
local function channels_last(x, format)
  if format ~= "channels_first" then return x, function(y) return y end end
  return ops.moveaxis(x, 2, -1), function(y) return ops.moveaxis(y, -1, 2) end
end

-- The geometry of the last two spatial axes, of a picture; what is missing in front is one row.
local function plane(g)
  local list = { sizes = {}, kernel = {}, stride = {}, dilation = {}, before = {}, after = {}, count = {} }
  for name, default in pairs { sizes = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0, count = 1 } do
    for i = 1, 2 do
      local from = g.rank - 2 + i
      list[name][i] = from >= 1 and g[name][from] or default
    end
  end
  return list
end

-- Sets padding and strides of two axes in an op's attributes.
local function fill_window(a, p)
  for i = 0, 1 do
    a.padding[2 * i], a.padding[2 * i + 1] = p.before[i + 1], p.after[i + 1]
    a.stride[i] = p.stride[i + 1]
  end
end

-- A volume with planes of zeros before and after it.
local function with_zeros(x, before, after)
  return ops.pad(x, { { 0, 0 }, { before, after }, { 0, 0 }, { 0, 0 }, { 0, 0 } })
end

-- f(picture, tap), an op on pictures {rows, height, width, channels}, on x of any rank. Of a volume: for each tap of its kernel along the
-- depth the planes under it are one batch, and the results of the taps are added up.
local function on_planes(x, g, f)
  local dims = tools.dims(x)
  if g.rank == 1 then
    local y = f(ops.expand_dims(x, 2), 1)
    return ops.squeeze(y, 2)
  elseif g.rank == 2 then return f(x, 1) end
  if g.before[1] + g.after[1] > 0 then x = with_zeros(x, g.before[1], g.after[1]) end
  local result
  for tap = 1, g.kernel[1] do
    local first = (tap - 1) * g.dilation[1] + 1
    local planes = tools.part(x, 2, first, first + (g.count[1] - 1) * g.stride[1], g.stride[1])
    local y = f(ops.reshape_raw(planes, { dims[1] * g.count[1], dims[3], dims[4], dims[5] }), tap)
    local made = tools.dims(y)
    y = ops.reshape_raw(y, { dims[1], g.count[1], made[2], made[3], made[4] })
    result = result and result + y or y
  end
  return result
end

-- x: {n, sizes..., channels}, 1 to 3 sizes; kernel: {sizes..., channels / groups, filters}. One axis is a plane of one row; of three axes
-- the planes of each position of the kernel along the first one are convolved and added up. Whole numbers are computed as float32.
local function convolve(x, kernel, options, what)
  local dtype = tools.is_float(x) and x.dtype or "float32"
  x, kernel = x:to(dtype), kernel:to(dtype)
  local shape, rank = tools.dims(kernel), #tools.dims(x)
  if #shape ~= rank then raise("flow.%s: a kernel of rank %d for inputs of rank %d", what, #shape, rank) end
  if rank < 3 or rank > 5 then raise("flow.%s: inputs have 3 to 5 axes, {rows, sizes..., channels}, got %d", what, rank) end
  local channels = tools.length(x, rank, what)
  local groups = channels / math.max(shape[#shape - 1], 1)
  if groups < 1 or groups % 1 ~= 0 or shape[#shape] % groups ~= 0 then
    raise("flow.%s: a kernel %s for %d channels", what, require("flow.tensor").shape_text(shape), channels)
  end
  local g = geometry(x, { unpack(shape, 1, #shape - 2) }, options.strides or 1, options.dilation_rate, options.padding, what)
  local p = plane(g)
  return on_planes(x, g, function(pictures, tap)
    local own = kernel
    if g.rank == 1 then own = ops.expand_dims(kernel, 1)
    elseif g.rank == 3 then own = ops.squeeze(tools.part(kernel, 1, tap, tap), 1) end
    return tools.apply("convolution", { pictures, own }, function(a)
      fill_window(a.convolution, p)
      a.convolution.dilation[0], a.convolution.dilation[1], a.convolution.groups = p.dilation[1], p.dilation[2], groups
    end, 2)[1]
  end)
end

local CONVOLUTION = ", { " .. WINDOW .. ", dilation_rate?: number|list; }"
-- Defines a function (inputs, kernel, options) that f does with channels last.
local function convolution(name, f)
  takes("inputs, kernel" .. CONVOLUTION)
  tools.define_long(function(x, kernel, options)
    local last, back = channels_last(operand(x, name), options.data_format)
    return back(f(last, operand(kernel, name), options))
  end, name)
end
convolution("conv", function(x, kernel, options) return convolve(x, kernel, options, "conv") end)

-- Kernels {..., channels, multiplier}: each channel makes `multiplier` of its own.
local function depthwise(x, kernel, options, what)
  local shape = tools.dims(kernel)
  local n = #shape
  if n < 2 then raise("flow.%s: a kernel of rank %d for inputs of rank %d", what, n, #tools.dims(x)) end
  shape[n - 1], shape[n] = 1, shape[n - 1] * shape[n]
  return convolve(x, ops.reshape_raw(kernel, shape), options, what)
end
convolution("depthwise_conv", function(x, kernel, options) return depthwise(x, kernel, options, "depthwise_conv") end)

takes("inputs, depthwise_kernel, pointwise_kernel" .. CONVOLUTION)
tools.define_long(function(x, depthwise_kernel, pointwise_kernel, options)
  local last, back = channels_last(operand(x, "separable_conv"), options.data_format)
  local y = depthwise(last, operand(depthwise_kernel, "separable_conv"), options, "separable_conv")
  return back(convolve(y, operand(pointwise_kernel, "separable_conv"), {}, "separable_conv"))
end, "separable_conv")

-- The gradient of a convolution by its input: elements with stride - 1 zeros between them, convolved with the kernel turned round. Kernels
-- are {..., channels out, channels in}.
takes("inputs, kernel, { " .. STRIDES .. ", output_padding?: number|list, " .. FORMAT .. ", dilation_rate?: number|list; }")
tools.define_long(function(x, kernel, options)
  local what = "conv_transpose"
  local back
  x, back = channels_last(floats(x, what), options.data_format)
  kernel = operand(kernel, what):to(x.dtype)
  local rank = #tools.dims(x) - 2
  local stride = per_axis(options.strides or 1, rank, what, "a stride")
  local dilation = per_axis(options.dilation_rate or 1, rank, what, "a dilation")
  for i = 1, rank do
    local axis, n = i + 1, tools.length(x, i + 1, what)
    local size = tools.length(kernel, i, what)
    local extent = (size - 1) * dilation[i] + 1
    local more = options.output_padding
    if type(more) == "table" then more = more[i] end
    local same = options.padding == "same"
    local length = same and n * stride[i] or n * stride[i] + math.max(extent - stride[i], 0)
    if more then length = (n - 1) * stride[i] + extent - (same and 2 * math.floor(extent / 2) or 0) + more end
    if stride[i] > 1 then
      local widths, dims = {}, tools.dims(x)
      for k = 1, #dims + 1 do widths[k] = { 0, k == axis + 1 and stride[i] - 1 or 0 } end
      dims[axis] = n * stride[i]
      x = tools.part(ops.reshape_raw(ops.pad(ops.expand_dims(x, axis + 1), widths), dims), axis, 1, (n - 1) * stride[i] + 1)
    end
    local whole = (n - 1) * stride[i] + extent
    local cut = same and math.floor(math.max(whole - length, 0) / 2) or 0
    local widths = {}
    for k = 1, rank + 2 do widths[k] = { 0, 0 } end
    local first, last = extent - 1 - cut, extent - 1 + (length - whole) + cut
    widths[axis] = { math.max(first, 0), math.max(last, 0) }
    x = ops.pad(x, widths)
    if first < 0 then x = tools.part(x, axis, 1 - first, tools.dims(x)[axis]) end
    if last < 0 then x = tools.part(x, axis, 1, tools.dims(x)[axis] + last) end
    kernel = ops.flip(kernel, i)
  end
  return back(convolve(x, ops.swapaxes(kernel, -1, -2), { dilation_rate = dilation }, what))
end, "conv_transpose")

---- pooling ----------------------------------------------------------------------------------------

local MOST = 254      -- cells of a window: the op's positions of maxima are bytes

-- The largest of windows of more cells than that, in pictures: along rows and then along columns, and along each by parts of the window, of
-- which the first has equal ones. Windows that reach beyond an end have the cell there, so that more of the same changes no maximum.
local function largest_of_many(x, p, pool)
  local function along(i, kernel, before, after)
    local q = { kernel = { 1, 1 }, stride = { 1, 1 }, before = { 0, 0 }, after = { 0, 0 } }
    q.kernel[i], q.stride[i], q.before[i], q.after[i] = kernel, p.stride[i], before, after
    return q
  end
  for _, i in ipairs { 2, 1 } do
    local kernel, axis, y = p.kernel[i], i + 1, nil
    if kernel <= MOST then y = pool(x, along(i, kernel, p.before[i], p.after[i])) else
      local n = tools.dims(x)[axis]
      local first, last = tools.part(x, axis, 1, 1), tools.part(x, axis, n, n)
      local list = { p.before[i] > 0 and ops.repeat_(first, p.before[i], axis) or nil }
      list[#list + 1] = x
      if p.after[i] > 0 then list[#list + 1] = ops.repeat_(last, p.after[i], axis) end
      x = #list > 1 and ops.concat(list, axis) or x
      local count = math.floor((tools.dims(x)[axis] - kernel) / p.stride[i])
      for begin = 0, kernel - 1, MOST do
        local size = math.min(kernel - begin, MOST)
        local part = pool(tools.part(x, axis, begin + 1, begin + count * p.stride[i] + size), along(i, size, 0, 0))
        y = y and ops.maximum(y, part) or part
      end
    end
    x = y
  end
  return x
end

-- Defines a pooling. Volumes are pooled in every plane, as pictures, and then over the depth, where a plane's cells are the channels of one
-- pixel: the largest of the largest, the mean of means of equally many cells.
local function pooling(name, op)
  takes("inputs, pool_size: number|list, { " .. WINDOW .. "; }")
  tools.define_long(function(x, size, options)
    local back
    x, back = channels_last(op == "average_pool" and floats(x, name) or operand(x, name), options.data_format)
    local g = geometry(x, size, options.strides, nil, options.padding, name)
    local pool
    function pool(pictures, p)
      if op == "max_pool" and p.kernel[1] * p.kernel[2] > MOST then return largest_of_many(pictures, p, pool) end
      return tools.apply(op, { pictures }, function(a)
        fill_window(a.pool, p)
        a.pool.size[0], a.pool.size[1] = p.kernel[1], p.kernel[2]
      end, op == "max_pool" and 2 or 1)[1]
    end
    local p = plane(g)
    if g.rank < 3 then return back(on_planes(x, g, function(pictures) return pool(pictures, p) end)) end
    local dims = tools.dims(x)
    local y = pool(ops.reshape_raw(x, { dims[1] * dims[2], dims[3], dims[4], dims[5] }), p)
    local made = tools.dims(y)
    local depth = { kernel = { g.kernel[1], 1 }, stride = { g.stride[1], 1 }, before = { g.before[1], 0 }, after = { g.after[1], 0 } }
    y = pool(ops.reshape_raw(y, { dims[1], dims[2], 1, made[2] * made[3] * made[4] }), depth)
    return back(ops.reshape_raw(y, { dims[1], g.count[1], made[2], made[3], made[4] }))
  end, name)
end
pooling("max_pool", "max_pool")
pooling("average_pool", "average_pool")

-- Windows that divide an axis of n elements in `count` parts, which may overlap by one: from floor(i n / count) to ceil((i + 1) n / count).
local function adaptive(name, reduce)
  takes "inputs, output_size: number|list, data_format: 'channels_last'|'channels_first' = 'channels_last'"
  tools.define_long(function(x, size, format)
    local back
    x, back = channels_last(floats(x, name), format)
    local counts = per_axis(size, #tools.dims(x) - 2, name, "an output size")
    for i, count in ipairs(counts) do
      local n, parts = tools.length(x, i + 1, name), {}
      for k = 0, count - 1 do
        parts[k + 1] = reduce(tools.part(x, i + 1, math.floor(k * n / count) + 1, math.ceil((k + 1) * n / count)), i + 1, true)
      end
      x = ops.concat(parts, i + 1)
    end
    return back(x)
  end, name)
end
adaptive("adaptive_average_pool", ops.mean)
-- By a window as long as the axis: of equal values the first has the gradient.
local function largest(part, axis)
  local dims, window = tools.dims(part), {}
  for i = 2, #dims - 1 do window[i - 1] = i == axis and dims[i] or 1 end
  return ops.max_pool(part, window, { strides = 1 })
end
adaptive("adaptive_max_pool", largest)

---- patches ----------------------------------------------------------------------------------------

-- Blocks of pictures {batch, channels, height, width} as columns {batch, channels kh kw, blocks}.
takes "x, kernel_size: number|list, { dilation = 1, padding = 0, stride = 1; }"
tools.define_long(function(x, kernel, options)
  local pad = per_axis(options.padding, 2, "unfold", "a padding", 0)
  x = ops.pad(operand(x, "unfold"), { { 0, 0 }, { 0, 0 }, { pad[1], pad[1] }, { pad[2], pad[2] } })
  local list, g = windows.taps(ops.moveaxis(x, 2, -1), kernel, options.stride, options.dilation, "valid", "unfold")
  local dims = tools.dims(list[1])
  local y = ops.transpose(ops.stack(list, -1), { 1, 4, 5, 2, 3 })
  return ops.reshape_raw(y, { dims[1], dims[4] * #list, g.count[1] * g.count[2] })
end, "unfold")

-- The other way round: columns added up where blocks overlap.
takes "x, output_size: number|list, kernel_size: number|list, { dilation = 1, padding = 0, stride = 1; }"
tools.define_long(function(x, output, kernel, options)
  local function pair_of(value, name, least) return per_axis(value, 2, "fold", name, least) end
  x, output, kernel = floats(x, "fold"), pair_of(output, "an output size"), pair_of(kernel, "a window")
  local pad, stride = pair_of(options.padding, "a padding", 0), pair_of(options.stride, "a stride")
  local dilation = pair_of(options.dilation, "a dilation")
  local dims, count, sizes = tools.dims(x), {}, {}
  if #dims ~= 3 then raise("flow.fold: columns are {batch, channels kh kw, blocks}, got rank %d", #dims) end
  for i = 1, 2 do
    sizes[i] = output[i] + 2 * pad[i]
    count[i] = math.floor((sizes[i] - (kernel[i] - 1) * dilation[i] - 1) / stride[i]) + 1
  end
  local channels = dims[2] / (kernel[1] * kernel[2])
  if channels % 1 ~= 0 or dims[3] ~= count[1] * count[2] then
    raise("flow.fold: columns %s do not make pictures of %d by %d", require("flow.tensor").shape_text(dims), output[1], output[2])
  end
  local blocks = ops.reshape_raw(x, { dims[1], channels, kernel[1] * kernel[2], count[1], count[2] })
  local sum
  for row = 0, kernel[1] - 1 do
    for column = 0, kernel[2] - 1 do
      local tap = row * kernel[2] + column + 1
      local block = ops.squeeze(tools.part(blocks, 3, tap, tap), 3)
      for axis = 1, 2 do      -- zeros between the elements, then around them
        local first = (axis == 1 and row or column) * dilation[axis]
        local own, widths = tools.dims(block), {}
        for k = 1, 5 do widths[k] = { 0, k == axis + 3 and stride[axis] - 1 or 0 } end
        own[axis + 2] = count[axis] * stride[axis]
        block = ops.reshape_raw(ops.pad(ops.expand_dims(block, axis + 3), widths), own)
        block = tools.part(block, axis + 2, 1, (count[axis] - 1) * stride[axis] + 1)
        local around = { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } }
        around[axis + 2] = { first, sizes[axis] - first - (count[axis] - 1) * stride[axis] - 1 }
        block = ops.pad(block, around)
      end
      sum = sum and sum + block or block
    end
  end
  for axis = 1, 2 do sum = tools.part(sum, axis + 2, pad[axis] + 1, pad[axis] + output[axis]) end
  return sum
end, "fold")

-- Blocks of block_size by block_size elements as channels of one, and back.
local function with_blocks(name, f)
  takes "x, block_size: count, data_format: 'channels_last'|'channels_first' = 'channels_last'"
  tools.define_long(function(x, block, format)
    local last, back = channels_last(operand(x, name), format)
    local dims = tools.dims(last)
    if #dims ~= 4 then raise("flow.%s: pictures of rank 4, got %d", name, #dims) end
    return back(f(last, block, dims))
  end, name)
end
local function divided(n, by, what)
  if n % by ~= 0 then raise("flow.%s: %d does not divide into blocks of %d", what, n, by) end
  return n / by
end
with_blocks("space_to_depth", function(x, b, d)
  local height, width = divided(d[2], b, "space_to_depth"), divided(d[3], b, "space_to_depth")
  x = ops.reshape_raw(x, { d[1], height, b, width, b, d[4] })
  return ops.reshape_raw(ops.transpose(x, { 1, 2, 4, 3, 5, 6 }), { d[1], height, width, b * b * d[4] })
end)
with_blocks("depth_to_space", function(x, b, d)
  local channels = divided(d[4], b * b, "depth_to_space")
  x = ops.reshape_raw(x, { d[1], d[2], d[3], b, b, channels })
  return ops.reshape_raw(ops.transpose(x, { 1, 2, 4, 3, 5, 6 }), { d[1], d[2] * b, d[3] * b, channels })
end)
