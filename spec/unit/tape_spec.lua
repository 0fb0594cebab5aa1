-- tape_spec.lua: gradients of recorded calls: variables, watched tensors, structures, and what has no gradient.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

describe("flow.GradientTape", function()
  it("returns the results of the recorded function", function()
    local tape = flow.GradientTape()
    local a, b, c = tape:record(function(x, y) return x + y, nil, "text" end, flow.tensor(1), 2)
    assert.equal(3, a:item())
    assert.is_nil(b)
    assert.equal("text", c)
  end)

  it("differentiates by variables and watched tensors, in the structure of the sources", function()
    local w, x = flow.Variable { 1, 2, 3 }, flow.tensor { 2, 2, 2 }
    local tape = flow.GradientTape { persistent = true }
    tape:watch(x)
    local loss = tape:record(function() return (w * w * x):sum() end)
    assert.equal(28, loss:item())
    local gradients = tape:gradient(loss, { weights = { w }, input = x })
    assert.same({ 4, 8, 12 }, gradients.weights[1]:totable())
    assert.same({ 1, 4, 9 }, gradients.input:totable())
    assert.same({ 4, 8, 12 }, tape:gradient(loss, w):totable())
  end)

  it("watches tensors while it records, and intermediate ones", function()
    local tape, x, y = flow.GradientTape { persistent = true }, flow.tensor(3), nil
    local z = tape:record(function()
      tape:watch(x)
      y = x * x
      return y * y
    end)
    assert.equal(108, tape:gradient(z, x):item())
    assert.equal(18, tape:gradient(z, y):item())
  end)

  it("gives nil where the target does not depend on a source", function()
    local v, other = flow.Variable(2), flow.Variable(3)
    local tape = flow.GradientTape { persistent = true }
    local y = tape:record(function() return v * v end)
    local gradients = tape:gradient(y, { v, other })
    assert.equal(4, gradients[1]:item())
    assert.is_nil(gradients[2])
  end)

  it("stops at stop_gradient and passes variables that are not trainable", function()
    local v = flow.Variable(2)
    local frozen = flow.Variable(3, { trainable = false })
    local tape = flow.GradientTape { persistent = true }
    local y = tape:record(function() return v * flow.stop_gradient(v) * frozen end)
    assert.equal(6, tape:gradient(y, v):item())
    assert.is_nil(tape:gradient(y, { frozen })[1])
  end)

  it("reaches through indexing, shapes and reductions", function()
    local x = flow.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
    local tape = flow.GradientTape { persistent = true }
    tape:watch(x)
    local y = tape:record(function() return (x[2] * x[{ {}, 1 }]:sum()):reshape(3, 1):mean() end)
    -- y = s * (4 + 5 + 6) / 3 with s = x11 + x21
    local gradient = tape:gradient(y, x):totable()
    assert.same({ 5, 0, 0 }, gradient[1])
    for i, expected in ipairs { 5 + 5 / 3, 5 / 3, 5 / 3 } do assert.is_true(math.abs(gradient[2][i] - expected) < 1e-5) end
  end)

  it("agrees with differences for a small network", function()
    local x = flow.tensor { { 0.5, -0.2 }, { 0.1, 0.9 }, { -0.7, 0.3 } }
    local w = flow.Variable { { 0.3, -0.5 }, { 0.8, 0.1 } }
    local function loss() return flow.log_softmax((x:matmul(w)):tanh()):square():mean() end
    local tape = flow.GradientTape()
    local y = tape:record(loss)
    local gradient = tape:gradient(y, w):totable()
    local start, step = w:totable(), 1e-2
    for i = 1, 2 do
      for j = 1, 2 do
        local function at(delta)
          local moved = { { start[1][1], start[1][2] }, { start[2][1], start[2][2] } }
          moved[i][j] = moved[i][j] + delta
          w:assign(moved)
          return loss():item()
        end
        local difference = (at(step) - at(-step)) / (2 * step)
        assert.is_true(math.abs(difference - gradient[i][j]) < 1e-3, ("%g and %g"):format(difference, gradient[i][j]))
      end
    end
  end)

  it("starts from the beginning with every recording, and ends when the function fails", function()
    local v, tape = flow.Variable(3), flow.GradientTape()
    tape:record(function() return v * v end)
    local y = tape:record(function() return v * 5 end)
    assert.equal(5, tape:gradient(y, v):item())
    local ok, message = pcall(tape.record, tape, function() error("my own", 0) end)
    assert.is_false(ok)
    assert.equal("my own", message)
    local native = require "flow.ffi"
    assert.equal(0, native.C.flow_tape_depth(native.context))
  end)

  it("says what it refuses", function()
    local tape, v = flow.GradientTape(), flow.Variable(1)
    assert.equal("gradient(): this tape has recorded nothing; call tape:record(f) first",
      message_of(function() tape:gradient(flow.tensor(1), v) end))
    local y = tape:record(function() return v * 2 end)
    assert.equal("gradient(): a source is a tensor, a variable or a list of them, got the number 1",
      message_of(function() tape:gradient(y, 1) end))
    assert.equal("gradient(): the target is a tensor, got nil", message_of(function() tape:gradient(nil, v) end))
    assert.equal("gradient(): the target has dtype int64, which has no gradient",
      message_of(function() tape:gradient(flow.tensor(1, { dtype = "int64" }), v) end))
    assert.equal("watch(): gradients need floating-point numbers, this tensor is int32",
      message_of(function() tape:watch(flow.arange(3)) end))
    assert.equal("elements cannot be assigned while a tape records, since gradients would not see it: use flow.where",
      message_of(function() tape:record(function()
        local t = flow.ones { 2 }
        t[1] = 0
      end) end))
    assert.equal('a gradient tape has no field "gradent"; did you mean "gradient"?', message_of(function() tape:gradent() end))
  end)

  it("watches only the variables that it is told to, where it is made so", function()
    local a, b, x = flow.Variable(0), flow.Variable(10), flow.tensor(2)
    local function graph() return flow.sum(flow.sin(a) + flow.softplus(b) + x * b) end
    local tape = flow.GradientTape { watch_accessed_variables = false, persistent = true }
    tape:watch(b)
    tape:watch(x)
    local y = tape:record(graph)
    local found = tape:gradient(y, { a = a, b = b, x = x })
    assert.is_nil(found.a)                                              -- as in TensorFlow
    assert.near(1 / (1 + math.exp(-10)) + 2, found.b:item(), 1e-6)
    assert.equal(10, found.x:item())
    assert.equal(0, tape:gradient(y, a, nil, "zero"):item())
    assert.is_nil(tape:jacobian(y, a))
    assert.near(found.b:item(), tape:jacobian(y, b):item(), 1e-6)
    local constant = flow.Variable(1, { trainable = false })
    assert.error_matches(function() tape:watch(constant) end, "is not trainable: set variable.trainable = true")
  end)

  it("gives its gradients once, unless it is persistent, as in TensorFlow", function()
    local v, tape = flow.Variable(3), flow.GradientTape()
    local spent = "gradient(): this tape gave its gradients already; flow.GradientTape { persistent = true } makes one that may be asked "
      .. "several times"
    local function square() return v * v end
    local y = tape:record(square)
    assert.equal("gradient(): a source is a tensor, a variable or a list of them, got the number 1",
      message_of(function() tape:gradient(y, 1) end))
    assert.equal(6, tape:gradient(y, v):item())
    assert.equal(spent, message_of(function() tape:gradient(y, v) end))
    assert.equal("jacobian" .. spent:sub(9), message_of(function() tape:jacobian(y, v) end))
    y = tape:record(square)
    assert.equal(6, tape:jacobian(y, v):item())
    local inside
    y = tape:record(function()
      local z = v * v
      inside = tape:gradient(z, v)
      return z
    end)
    assert.equal(6, inside:item())
    assert.equal(spent, message_of(function() tape:gradient(y, v) end))
    local persistent = flow.GradientTape { persistent = true }
    y = persistent:record(square)
    for _ = 1, 2 do assert.equal(6, persistent:gradient(y, v):item()) end
  end)

  -- The values are TensorFlow's, of the same lines.
  it("forgets with reset(), and leaves out what stop_recording() ran", function()
    local v = flow.Variable(2)
    local function check(x)
      local tape = flow.GradientTape { persistent = true }
      tape:watch(x)
      local a, b, c, z, w
      tape:record(function()
        a = v * v
        tape:reset()
        b = v * 3 + x * x
        z, c = tape:stop_recording(function(s) return b * s, { b } end, 2)
        w = b * z
      end)
      local of_b, of_constants = tape:gradient(b, { v, x }), tape:gradient({ a, z, c[1] }, { v }, nil, "zero")
      return of_b[1], of_b[2], tape:gradient(w, v), of_constants[1]
    end
    for _, f in ipairs { check, flow.fn(check) } do
      local found = { f(flow.tensor(3)) }
      for i, value in ipairs { 3, 6, 90, 0 } do assert.equal(value, found[i]:item(), i) end
    end
    local tape = flow.GradientTape()
    local y = tape:record(function() return v * v end)
    tape:reset()
    assert.equal("gradient(): this tape has recorded nothing; call tape:record(f) first", message_of(function() tape:gradient(y, v) end))
  end)

  it("tells which variables it watches, eagerly and in a traced function", function()
    local v, w, frozen, unread = flow.Variable(2), flow.Variable(3), flow.Variable(4, { trainable = false }), flow.Variable(5)
    local dense = flow.layers.Dense(1, { name = "watched" })
    dense:build { -1, 1 }
    local function names_of(tape)
      local list = {}
      for i, variable in ipairs(tape:watched_variables()) do list[i] = variable.path end
      return list
    end
    local function check(x)
      local tape, inside, round = flow.GradientTape(), nil, nil
      local y = tape:record(function()
        local first = w * v * frozen
        inside = names_of(tape)
        local scanned = flow.scan(function(carry, row) return carry + row * v, carry end, flow.zeros {}, x)
        round = scanned
        unread:assign(flow.tensor(1))
        return first + dense(flow.reshape(x, -1, 1)):sum() + w
      end)
      assert.is_not_nil(round)
      local all = names_of(tape)
      local gradients = tape:gradient(y, tape:watched_variables())
      assert.equal(#all, #gradients)
      return inside, all
    end
    for _, f in ipairs { check, flow.fn(check) } do
      local inside, all = f(flow.tensor { 1, 2 })
      assert.same({ w.path, v.path }, inside)
      assert.same({ w.path, v.path, dense.kernel.path, dense.bias.path }, all)
    end

    local tape = flow.GradientTape { watch_accessed_variables = false }
    tape:watch { v, unread }
    local y = tape:record(function() return w * v end)
    assert.same({ v.path, unread.path }, names_of(tape))
    tape:gradient(y, v)
    assert.same({ v.path, unread.path }, names_of(tape))      -- of a tape that has given its gradients, too
    assert.same({}, flow.GradientTape():watched_variables())
  end)

  it("records functions only", function()
    assert.equal("tape:record takes a function whose operations it records, got nil",
      message_of(function() flow.GradientTape():record() end))
  end)

  it("gives ones for a target that is the source itself, a variable or a tensor, watched or not, as in TensorFlow", function()
    local v, w, x = flow.Variable { 3, 4 }, flow.Variable(2), flow.tensor { 1, 2 }
    local function taken()
      local tape = flow.GradientTape { persistent = true }
      local y = tape:record(function() return (v * v * w):sum() end)
      assert.is_nil(tape:gradient(v, w))
      return tape:gradient(v, v), tape:gradient({ v, y }, { v, w })[1], tape:gradient(v, v, flow.tensor { 5, 6 }), tape:gradient(w, w),
        tape:gradient(x, x), tape:gradient({ x, x }, { x })[1], tape
    end
    for _, f in ipairs { taken, flow.fn(function() return unpack({ taken() }, 1, 6) end) } do
      local of_v, of_both, of_given, of_w, of_x, of_two = f()
      assert.same({ 1, 1 }, of_v:totable())
      assert.same({ 13, 17 }, of_both:totable())      -- 2 v w + 1
      assert.same({ 5, 6 }, of_given:totable())
      assert.equal(1, of_w:item())
      assert.same({ 1, 1 }, of_x:totable())
      assert.same({ 2, 2 }, of_two:totable())
    end
    local tape = select(7, taken())
    assert.truthy(message_of(function() tape:gradient(v, v, flow.ones { 3 }) end):find("has the shape {3}, its target {2}", 1, true))
    local whole = flow.Variable(flow.tensor({ 1 }, { dtype = "int32" }))
    assert.truthy(message_of(function() tape:gradient(whole, v) end):find("has dtype int32, which has no gradient", 1, true))
  end)
end)
