--- Products in plans read and write heads where they lie, {batch, steps, heads, channels}, in place of transposed copies: the bits of eager
--- calls, which transpose. Shapes are random; FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(40)
local HEADS = { 1, 3, 2, 4 }      -- the axes of {batch, steps, heads, channels} as {batch, heads, steps, channels}, and back

--- op(a) op(b) of operands of which each is transposed by its heads, by its matrices, by both or not at all; so is the result.
local function random_product(number)
  local draw = arguments.source(number).draw
  local batch, heads, m, k, n = draw(1, 5), draw(1, 5), draw(1, 40), draw(1, 40), draw(1, 40)
  local dtype = ({ "float32", "float32", "float64", "int32" })[draw(1, 4)]
  local more = draw(1, 3) == 1 and draw(1, 3) or nil      -- another axis before the heads
  local swapped = { draw(1, 3) > 1, draw(1, 3) > 1, draw(1, 3) > 1 }
  local transposed = { draw(1, 2) == 1, draw(1, 2) == 1 }
  local shared = draw(1, 4) == 1                          -- one matrix b for all heads
  local function operand(rows, columns, i, own_heads)
    if transposed[i] then rows, columns = columns, rows end
    local shape = swapped[i] and { batch, rows, own_heads, columns } or { batch, own_heads, rows, columns }
    if more then table.insert(shape, 2, more) end
    return backend.uniform(shape, number + i, -3, 3, dtype == "int32"):to(dtype)
  end
  local axes = more and { 1, 2, 4, 3, 5 } or HEADS
  return {
    operand(m, k, 1, heads), operand(k, n, 2, shared and 1 or heads),
    f = function(a, b)
      if swapped[1] then a = a:transpose(axes) end
      if swapped[2] then b = b:transpose(axes) end
      local y = a:matmul(b, { transpose_a = transposed[1], transpose_b = transposed[2] })
      return (swapped[3] and y:transpose(axes) or y) + 1      -- what a plan returns is not written otherwise
    end,
    swaps = swapped[1] or swapped[2] or swapped[3], dtype = dtype, narrow = m == 1 or k == 1 or n == 1,
    shared = shared and heads > 1 and not transposed[1],
    label = ("number %d: %s, %d x %d heads, {%d, %d} by {%d, %d}"):format(number, dtype, batch, heads, m, k, k, n),
  }
end

local function transposes(f) return tostring(flow.profile(f)):find("\ntranspose ", 1, true) ~= nil end

describe("products of heads", function()
  it("have the bits of transposed operands, and no transposed copies in plans", function()
    local folded = 0
    for number = FIRST, LAST do
      local case = random_product(number)
      local a, b = case[1], case[2]
      local eager, planned = case.f(a, b), flow.fn(case.f)
      backend.identical(eager, planned(a, b), case.label)
      if case.swaps and not case.narrow and not case.shared then
        assert.is_false(transposes(function() planned(a, b) end), case.label)
        folded = folded + 1
      end
      if number % 50 == 0 then collectgarbage() end
    end
    assert.is_true(CASES < 20 or folded > CASES / 4)
  end)

  it("with one matrix for all have the bits of the tall matrix that eager calls multiply", function()
    local b = backend.uniform({ 1, 1, 40, 38 }, 2, -3, 3):to("float32")
    local function f(x) return x:transpose(HEADS):matmul(b, { transpose_b = true }):transpose(HEADS) + 1 end
    for _, shape in ipairs { { 1, 3, 5, 38 }, { 2, 3, 5, 38 }, { 1, 1, 2, 38 } } do
      local x = backend.uniform(shape, 1, -3, 3):to("float32")
      backend.identical(f(x), flow.fn(f)(x), table.concat(shape, ", "))
    end
  end)

  it("have the gradients of eager calls", function()
    local function step(a, b)
      local tape = flow.GradientTape()
      tape:watch(a)
      tape:watch(b)
      local loss = tape:record(function()
        local y = a:transpose(HEADS):matmul(b:transpose(HEADS), { transpose_b = true }):softmax()
        return (y:matmul(b:transpose(HEADS)):transpose(HEADS) * a):sum()
      end)
      return loss, unpack(tape:gradient(loss, { a, b }))
    end
    local a, b = backend.uniform({ 3, 7, 2, 5 }, 1, -1, 1):to("float32"), backend.uniform({ 3, 9, 2, 5 }, 2, -1, 1):to("float32")
    local planned = flow.fn(step)
    local eager, found = { step(a, b) }, { planned(a, b) }
    for i = 1, 3 do
      local largest = eager[i]:abs():max():item()
      assert.is_true((eager[i] - found[i]):abs():max():item() <= 1e-6 * largest, "result " .. i)
    end
    assert.is_false(transposes(function() planned(a, b) end))
  end)

  it("leave what a plan returns, and what others read, as it is", function()
    local a, b = flow.random.normal({ 2, 3, 4, 5 }, { seed = 1 }), flow.random.normal({ 2, 3, 4, 5 }, { seed = 2 })
    local function f(x, y)
      local turned, product = x:transpose(HEADS), x:transpose(HEADS):matmul(y:transpose(HEADS), { transpose_b = true })
      local back = product:transpose(HEADS)
      return turned, product, back, back:sum(3), turned:exp()
    end
    local eager, planned = { f(a, b) }, { flow.fn(f)(a, b) }
    for i = 1, 5 do
      assert.same(eager[i].shape, planned[i].shape)
      assert.is_true((eager[i] - planned[i]):abs():max():item() < 1e-5, "result " .. i)
    end
  end)

  it("take batches of any size in one plan", function()
    local function f(a, b) return a:transpose(HEADS):matmul(b:transpose(HEADS), { transpose_b = true }):transpose(HEADS) * 2 end
    local planned = flow.fn(f)
    for _, rows in ipairs { 5, 1, 9, 2 } do
      local a, b = flow.random.normal({ rows, 6, 3, 8 }, { seed = rows }), flow.random.normal({ rows, 7, 3, 8 }, { seed = rows + 1 })
      backend.identical(f(a, b), planned(a, b), rows .. " rows")
    end
  end)
end)
