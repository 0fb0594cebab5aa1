-- einsum.lua: flow.einsum("bij,bjk->bik", a, b): products of tensors summed over the labels that the result lacks, as numpy.einsum defines
-- them. Each pair of operands becomes one matmul, with the labels that both and the result have as axes of its batch. ops.lua loads it when
-- it is first called.

local errors = require "flow.errors"
local tensor = require "flow.tensor"

local raise = errors.raise
local WHAT = "flow.einsum"

-- The labels of one operand or of the result, of which an ellipsis stands for `more` axes. These have their own labels, which count from
-- the last one, since ellipses of fewer axes stand for the last of them; they are sorted from the first, and before letters.
local function labels_of(text, equation, more)
  local list, at = {}, 1
  while at <= #text do
    local label = text:sub(at, at)
    if text:find("^%.%.%.", at) and not text:find(".", at + 3, true) then
      for i = more, 1, -1 do list[#list + 1] = ("...%02d"):format(99 - i) end
      at = at + 3
    elseif label:find "%a" then
      list[#list + 1], at = label, at + 1
    else
      raise("%s: %q has %q in the equation %q; labels are letters, and one ellipsis ...", WHAT, text, label, equation)
    end
  end
  return list
end

-- The result's labels when the equation does not name them: those of ellipses, and those that occur once, in the order of the alphabet.
local function implied(inputs)
  local count, list = {}, {}
  for _, labels in ipairs(inputs) do
    for _, label in ipairs(labels) do count[label] = (count[label] or 0) + 1 end
  end
  for label, times in pairs(count) do list[#list + 1] = (times == 1 or #label > 1) and label or nil end
  table.sort(list)
  return list
end

-- The labels of each operand and of the result, lists of texts. Without -> the result has the labels that stand once, as NumPy has it.
local function parse(equation, operands)
  if type(equation) ~= "string" then
    raise("%s: the equation is a text such as \"ij,jk->ik\", got %s", WHAT, errors.describe(equation))
  end
  local left, right = equation:gsub("%s", ""), nil
  local arrow = left:find("->", 1, true)
  if arrow then left, right = left:sub(1, arrow - 1), left:sub(arrow + 2) end
  local texts, inputs, known, seen, most = {}, {}, {}, {}, 0
  for text in (left .. ","):gmatch "([^,]*)," do texts[#texts + 1] = text end
  if #texts ~= #operands then
    raise("%s: the equation %q is for %d operand%s, got %d", WHAT, equation, #texts, #texts == 1 and "" or "s", #operands)
  end
  for i, text in ipairs(texts) do
    local named, ellipses = text:gsub("%.%.%.", "")
    local more = ellipses > 0 and #tensor.raw_shape(operands[i]) - #named or 0      -- fewer than none: measure() says so
    inputs[i], most = labels_of(text, equation, more), math.max(most, more)
  end
  local output = right and labels_of(right, equation, most) or implied(inputs)
  for _, labels in ipairs(inputs) do
    for _, label in ipairs(labels) do known[label] = true end
  end
  for _, label in ipairs(output) do
    if not known[label] or seen[label] then
      raise("%s: the label %q of the result stands %s in %q", WHAT, label, seen[label] and "twice" or "in no operand", equation)
    end
    seen[label] = true
  end
  return inputs, output
end

local function set_of(labels)
  local set = {}
  for i, label in ipairs(labels) do set[label] = i end
  return set
end

-- The labels for which test(label) holds.
local function filter(labels, test)
  local list = {}
  for _, label in ipairs(labels) do list[#list + 1] = test(label) and label or nil end
  return list
end

local function joined(...)
  local list = {}
  for _, part in ipairs { ... } do
    for _, label in ipairs(part) do list[#list + 1] = label end
  end
  return list
end

return function(ops)
  -- x with its axes in the order of `wanted`.
  local function ordered(x, labels, wanted)
    local position, order, moved = set_of(labels), {}, false
    for i, label in ipairs(wanted) do
      order[i] = position[label]
      moved = moved or order[i] ~= i
    end
    return moved and ops.transpose(x, order) or x
  end

  -- Elements i, i, ... of two axes with one label: after the axes are one of n * n, every (n + 1)th.
  local function diagonal(x, labels, first, second, equation)
    local order, rest = {}, {}
    for i = 1, #labels do
      if i ~= first and i ~= second then order[#order + 1], rest[#rest + 1] = i, labels[i] end
    end
    order[#order + 1], order[#order + 2] = first, second
    x = ops.transpose(x, order)
    local dims = tensor.raw_shape(x)
    local n = dims[#dims]
    if n < 0 then raise("%s: %q in %q stands twice for an axis of which only the call knows the size", WHAT, labels[first], equation) end
    table.remove(dims)
    dims[#dims] = n * n
    local begins, ends, steps = {}, {}, {}
    for i = 1, #dims do begins[i], ends[i], steps[i] = 0, dims[i], 1 end
    steps[#dims] = n + 1
    rest[#rest + 1] = labels[first]
    return ops.slice_from_zero(ops.reshape_raw(x, dims), begins, ends, steps), rest
  end

  local function without_repetitions(x, labels, equation)
    local seen, i = {}, 1
    while i <= #labels do
      local first = seen[labels[i]]
      if first then
        x, labels = diagonal(x, labels, first, i, equation)
        seen, i = {}, 0
      else
        seen[labels[i]] = i
      end
      i = i + 1
    end
    return x, labels
  end

  -- x summed over the labels that nothing needs.
  local function sum_rest(x, labels, needed)
    local axes = {}
    for i, label in ipairs(labels) do axes[#axes + 1] = not needed(label) and i or nil end
    if #axes == 0 then return x, labels end
    local dtype = x.dtype
    return ops.cast(ops.sum(x, axes), dtype), filter(labels, needed)
  end

  local function sizes_of(labels, sizes)
    local list = {}
    for i, label in ipairs(labels) do list[i] = sizes[label] end
    return list
  end

  -- Negative sizes are multiples of the rows of a batch: at most one of the factors is.
  local function product_of(labels, sizes)
    local product = 1
    for _, label in ipairs(labels) do product = product * sizes[label] end
    return product
  end

  local function many_unknown(labels, sizes)
    return #filter(labels, function(label) return sizes[label] < 0 end) > 1
  end

  -- a and b as one tensor, summed over the labels that both have and nothing needs afterwards.
  local function contract(a, a_labels, b, b_labels, needed, sizes)
    local in_a, in_b = set_of(a_labels), set_of(b_labels)
    a, a_labels = sum_rest(a, a_labels, function(label) return in_b[label] or needed[label] end)
    b, b_labels = sum_rest(b, b_labels, function(label) return in_a[label] or needed[label] end)
    local batch = filter(a_labels, function(label) return in_b[label] and needed[label] end)
    local inner = filter(a_labels, function(label) return in_b[label] and not needed[label] end)
    local rows = filter(a_labels, function(label) return not in_b[label] end)
    local columns = filter(b_labels, function(label) return not in_a[label] end)
    if many_unknown(rows, sizes) or many_unknown(columns, sizes) or many_unknown(inner, sizes) then
      raise("%s: two sizes that only the call knows would become one axis; sum or reshape first", WHAT)
    end
    local is_batch = set_of(batch)
    -- x as matrices {first, second}, each one label or several, or none. Where x has labels of `first` after those of `second` the matrices
    -- stay transposed, which the second result says: the product need not copy them.
    local function matrices(x, labels, first, second)
      local is_first, is_transposed = set_of(first), false
      for _, label in ipairs(labels) do
        if not is_batch[label] then is_transposed = is_first[label] ~= nil end
      end
      if is_transposed then first, second = second, first end
      x = ordered(x, labels, joined(batch, first, second))
      if #first ~= 1 or #second ~= 1 then
        x = ops.reshape_raw(x, joined(sizes_of(batch, sizes), { product_of(first, sizes), product_of(second, sizes) }))
      end
      return x, is_transposed
    end
    local transpose_a, transpose_b
    a, transpose_a = matrices(a, a_labels, rows, inner)
    b, transpose_b = matrices(b, b_labels, inner, columns)
    local y, result = ops.matmul(a, b, { transpose_a = transpose_a, transpose_b = transpose_b }), joined(batch, rows, columns)
    if #rows == 1 and #columns == 1 then return y, result end
    return ops.reshape_raw(y, sizes_of(result, sizes)), result
  end

  -- Axes of ellipses that have size 1 where other operands have more are dropped, so that each of the others' positions meets them.
  local function without_ones(operands, inputs)
    local sizes = {}
    for i, labels in ipairs(inputs) do
      for axis, label in ipairs(labels) do
        local size = tensor.raw_shape(operands[i])[axis]
        if #label > 1 and size ~= 1 then sizes[label] = size end
      end
    end
    for i, labels in ipairs(inputs) do
      for axis = #labels, 1, -1 do
        if sizes[labels[axis]] and tensor.raw_shape(operands[i])[axis] == 1 then
          operands[i] = ops.squeeze(operands[i], axis)
          table.remove(labels, axis)
        end
      end
    end
  end

  -- Checks that a label stands for one size everywhere.
  local function measure(operands, inputs, equation)
    local sizes = {}
    for i, labels in ipairs(inputs) do
      local shape = tensor.raw_shape(operands[i])
      if #shape ~= #labels then
        raise("%s: operand %d has %d axes, %q names %d in %q", WHAT, i, #shape, table.concat(labels), #labels, equation)
      end
      for axis, label in ipairs(labels) do
        if sizes[label] and sizes[label] ~= shape[axis] then
          raise("%s: %q stands for %d and, as axis %d of operand %d, for %d in %q", WHAT, label, sizes[label], axis, i, shape[axis],
            equation)
        end
        sizes[label] = shape[axis]
      end
    end
    return sizes
  end

  return function(equation, ...)
    local list = {}
    for i = 1, select("#", ...) do list[i] = ops.operand((select(i, ...)), nil, WHAT) end
    local inputs, output = parse(equation, list)
    for i, labels in ipairs(inputs) do
      if #labels ~= #tensor.raw_shape(list[i]) then measure(list, inputs, equation) end      -- which says so
    end
    without_ones(list, inputs)
    local sizes = measure(list, inputs, equation)
    for i = 1, #list do list[i], inputs[i] = without_repetitions(list[i], inputs[i], equation) end
    local x, labels = list[1], inputs[1]
    for i = 2, #list do
      local needed = set_of(output)
      for k = i + 1, #list do
        for _, label in ipairs(inputs[k]) do needed[label] = true end
      end
      x, labels = contract(x, labels, list[i], inputs[i], needed, sizes)
    end
    local wanted = set_of(output)
    x, labels = sum_rest(x, labels, function(label) return wanted[label] end)
    return ordered(x, labels, output)
  end
end
