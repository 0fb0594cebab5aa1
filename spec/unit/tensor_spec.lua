-- tensor_spec.lua: tensors as Lua values: making, fields, indexing, values, files, memory.
local support = require "spec.support.init"
local flow = require "flow"
local ffi = require "ffi"
local message_of = support.message_of

describe("flow.tensor", function()
  it("is walked through along its first axis by ipairs and pairs", function()
    local x, found = flow.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }, {}
    for i, row in ipairs(x) do found[i] = row:totable() end
    assert.same({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, found)
    for i, value in pairs(x[2]) do found[i] = value:item() end
    assert.same({ 3, 4, { 5, 6 } }, found)
    for _ in ipairs(flow.zeros { 0, 2 }) do error "there is no row" end
    assert.equal("a tensor of rank 0 has no length", message_of(function() ipairs(flow.tensor(1)) end))
    local said
    flow.fn(function(v)
      said = said or select(2, pcall(ipairs, v))
      return v
    end)(x)
    assert.matches("which a traced function does not know", said)
  end)

  it("makes float32 tensors of nested lists", function()
    local a = flow.tensor { { 1, 2 }, { 3, 4 } }
    assert.same({ { 1, 2 }, { 3, 4 } }, a:totable())
    assert.same({ 2, 2 }, a.shape)
    assert.equal("float32", a.dtype)
    assert.equal("cpu", a.device)
    assert.equal(2, a.rank)
    assert.equal(4, a.size)
    assert.equal(2, #a)
  end)

  it("has a shape that prints, and is equal to one with the same dimensions", function()
    local a = flow.zeros { 2, 3 }
    assert.equal("{2, 3}", tostring(a.shape))
    assert.equal("shape {2, 3}", "shape " .. a.shape)
    assert.is_true(a.shape == flow.ones { 2, 3 }.shape)
    assert.is_false(a.shape == flow.ones { 3, 2 }.shape)
    assert.same({ 2, 3 }, flow.zeros(a.shape).shape)      -- a list like others
    assert.same({ 3, 2 }, a:reshape { a.shape[2], -1 }.shape)
    assert.same({ 4, 2, 3 }, flow.zeros { 4, unpack(a.shape) }.shape)
    local input = flow.Input { 28, -1, 1 }
    assert.equal("(None, 28, None, 1)", tostring(input.shape))
    assert.equal("(None, 28, None, 2)", tostring(flow.Model(input, flow.layers.Dense(2)(input)).output_shape))
  end)

  it("makes scalars, booleans, other dtypes and copies", function()
    assert.equal(3.5, flow.tensor(3.5):item())
    assert.equal(0, flow.tensor(1).rank)
    local mask = flow.tensor { true, false }
    assert.equal("bool", mask.dtype)
    assert.same({ true, false }, mask:totable())
    local whole = flow.tensor({ 1, 2 }, { dtype = "int64", device = "/device:CPU:0" })
    assert.equal("int64", whole.dtype)
    local copy = flow.tensor(whole, { dtype = "float64" })
    copy[1] = 9
    assert.same({ 1, 2 }, whole:totable())
    assert.same({ 9, 2 }, copy:totable())
  end)

  it("copies numeric cdata arrays with their dtype and shape", function()
    local a = flow.tensor(ffi.new("double[2][3]", { { 1, 2, 3 }, { 4, 5, 6 } }))
    assert.equal("float64", a.dtype)
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, a:totable())
    local b = flow.tensor(ffi.new("uint8_t[?]", 3, { 7, 8, 9 }))
    assert.equal("uint8", b.dtype)
    assert.same({ 7, 8, 9 }, b:totable())
    assert.equal(5, flow.tensor(5LL):item())
  end)

  it("stacks a list of tensors", function()
    assert.same({ { 1, 1 }, { 0, 0 } }, flow.tensor({ flow.ones { 2 }, flow.zeros { 2 } }):totable())
  end)

  it("names the place of a wrong value, at the caller's line", function()
    assert.equal("flow.tensor: the list at [2] has 1 entries, its neighbours have 2: all rows need the same length",
      message_of(function() flow.tensor { { 1, 2 }, { 3 } } end))
    assert.equal("flow.tensor: the list has a hole: its entry 2 is nil, but it continues to 3",
      message_of(function() flow.tensor { 1, nil, 3 } end))
    assert.equal('flow.tensor: the value at [1][2] is the string "x", expected a number',
      message_of(function() flow.tensor { { 1, "x" } } end))
    assert.equal("flow.tensor: expected a number, nested lists or an array, got nil", message_of(function() flow.tensor(nil) end))
    assert.equal('flow.tensor: unknown option "dtyp"; did you mean "dtype"?',
      message_of(function() flow.tensor({ 1 }, { dtyp = "int8" }) end))
    assert.equal('unknown dtype "flot32"; did you mean "float32"?',
      message_of(function() flow.tensor({ 1 }, { dtype = "flot32" }) end))
    assert.matches('^device "gpu:63" does not exist: this process has .*"cpu:0"',
      message_of(function() flow.tensor({ 1 }, { device = "gpu:63" }) end))
  end)

  it("gives the line of the call, not of the library", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(function() flow.tensor {}:reshape { 3 }:sum() end)
    assert.truthy(message:find("tensor_spec.lua:" .. line .. ": ", 1, true), message)
  end)
end)

describe("constructors", function()
  it("take shapes as a list or as numbers, and options", function()
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, flow.zeros(2, 3):totable())
    assert.same({ 1, 1 }, flow.ones({ 2 }, { dtype = "int32" }):totable())
    assert.equal("int8", flow.zeros { 2, dtype = "int8" }.dtype)
    assert.same({ { 7 } }, flow.full({ 1, 1 }, 7):totable())
    assert.equal("bool", flow.full({ 2 }, true).dtype)
    assert.same({}, flow.zeros({}).shape)
    assert.same({ 0, 4 }, flow.zeros { 0, 4 }.shape)
  end)

  it("make eye, arange and linspace", function()
    assert.same({ { 1, 0, 0 }, { 0, 1, 0 } }, flow.eye(2, 3):totable())
    assert.equal("flow.eye: n is missing: it is a whole number from 0", message_of(function() flow.eye() end))
    assert.same({ 0, 1, 2 }, flow.arange(3):totable())
    assert.equal("int32", flow.arange(3).dtype)
    assert.same({ 5, 3, 1 }, flow.arange(5, 0, -2):totable())
    assert.same({ 0, 0.5, 1 }, flow.arange(0, 1.5, 0.5):totable())
    assert.same({}, flow.arange(3, 3):totable())
    assert.same({ 0, 0.25, 0.5, 0.75, 1 }, flow.linspace(0, 1, 5):totable())
    assert.same({ 0, 0.25, 0.5, 0.75 }, flow.linspace(0, 1, 4, { endpoint = false }):totable())
  end)

  it("refuse what is not a shape", function()
    assert.equal("flow.zeros: dimension 2 of a shape is a whole number from 0, got the number -1",
      message_of(function() flow.zeros { 2, -1 } end))
    assert.equal('flow.ones: dimension 1 of a shape is a whole number from 0, got the string "2"',
      message_of(function() flow.ones("2") end))
    assert.equal("a tensor has at most 8 dimensions, got 9", message_of(function() flow.zeros(1, 1, 1, 1, 1, 1, 1, 1, 1) end))
  end)
end)

describe("indexing", function()
  local a
  before_each(function() a = flow.tensor { { 1, 2, 3 }, { 4, 5, 6 } } end)

  it("takes positions from 1, the last at -1", function()
    assert.same({ 1, 2, 3 }, a[1]:totable())
    assert.same({ 4, 5, 6 }, a[-1]:totable())
    assert.equal(2, a[{ 1, 2 }]:item())
    assert.equal(6, a[2][3]:item())
  end)

  it("takes inclusive ranges with steps", function()
    assert.same({ { 1 }, { 4 } }, a[{ {}, { 1, 1 } }]:totable())
    assert.same({ { 2, 3 }, { 5, 6 } }, a[{ {}, { 2, -1 } }]:totable())
    assert.same({ { 1, 3 }, { 4, 6 } }, a[{ {}, { 1, 3, 2 } }]:totable())
    assert.same({ 2, 3 }, a[{ 1, { 2 } }]:totable())
    assert.same({ 5 }, a[{ -1, { -2, -2 } }]:totable())
    assert.same({}, a[{ 1, { 3, 2 } }]:totable())
  end)

  it("goes back along an axis by steps below 0", function()
    assert.same({ { 4, 5, 6 }, { 1, 2, 3 } }, a[{ { -1, 1, -1 } }]:totable())
    assert.same({ { 3, 2, 1 }, { 6, 5, 4 } }, a[{ {}, { nil, nil, -1 } }]:totable())
    assert.same({ { 3, 1 }, { 6, 4 } }, a[{ {}, { 3, 1, -2 } }]:totable())
    assert.same({ 2 }, a[{ 1, { 2, 2, -1 } }]:totable())
    assert.same({}, a[{ 1, { 1, 2, -1 } }]:totable())
    assert.same({ { 1, 4 }, { 3, 6 }, { 2 } }, { a[{ {}, { 1, 3, 2 ^ 52 } }]:reshape(-1):totable(),
      a[{ {}, { 3, 1, -2 ^ 52 } }]:reshape(-1):totable(), flow.fn(function(x) return x[{ 1, { 2, 1, -2 ^ 40 } }] end)(a):totable() })
    assert.same({ 0, 3 }, flow.zeros({ 0, 3 })[{ { nil, nil, -1 } }].shape)
    local turned = a[{ { -1, 1, -1 } }]      -- a view, as all ranges are
    turned[1] = 9
    assert.same({ { 1, 2, 3 }, { 9, 9, 9 } }, a:totable())
    local v, tape = flow.Variable { 1, 2, 3, 4 }, flow.GradientTape()
    local y = tape:record(function() return (v[{ { 4, 2, -2 } }] * flow.tensor { 10, 20 }):sum() end)
    assert.same({ 0, 20, 0, 10 }, tape:gradient(y, v):totable())
  end)

  it("gives views, and assignments write through them", function()
    a[1] = 0
    assert.same({ { 0, 0, 0 }, { 4, 5, 6 } }, a:totable())
    a[{ 2, { 1, 2 } }] = flow.tensor { 7, 8 }
    a[{ {}, 3 }] = { 9, 10 }
    assert.same({ { 0, 0, 9 }, { 7, 8, 10 } }, a:totable())
    local row = a[2]
    row[1] = -1
    assert.equal(-1, a[{ 2, 1 }]:item())
    a[{ 1, 1 }] = true
    assert.equal(1, a[{ 1, 1 }]:item())
  end)

  it("names what is out of range", function()
    assert.equal("position 3 is out of range: axis 1 has 2 elements", message_of(function() return a[3] end))
    assert.equal("position 0 is out of range: axis 1 has 2 elements, counted from 1", message_of(function() return a[0] end))
    assert.equal("the range {1, 5} is out of range: axis 2 has 3 elements", message_of(function() return a[{ 1, { 1, 5 } }] end))
    assert.equal("3 positions for a tensor of rank 2, shape {2, 3}", message_of(function() return a[{ 1, 1, 1 }] end))
    assert.equal("a position is a whole number from 1, got the number 1.5 on axis 1", message_of(function() return a[1.5] end))
    assert.equal("the step of a range is a whole number other than 0, got 0 on axis 1",
      message_of(function() return a[{ { 1, 2, 0 } }] end))
    assert.equal("position 4 is out of range: axis 2 has 3 elements", message_of(function() return a[{ 1, { 4, 1, -1 } }] end))
  end)
end)

describe("a tensor", function()
  it("has no other fields than its own", function()
    local a = flow.ones { 2 }
    assert.equal('a tensor has no field "shpe"; did you mean "shape"?', message_of(function() return a.shpe end))
    assert.equal('a tensor\'s field "shape" cannot be set', message_of(function() a.shape = { 1 } end))
    assert.equal("tensors are compared elementwise by a:lt(b), a:le(b), a:gt(b), a:ge(b)", message_of(function() return a < a end))
  end)

  it("is equal to itself only", function()
    local a, b = flow.ones { 2 }, flow.ones { 2 }
    assert.is_true(a == a)
    assert.is_false(a == b)
    assert.is_false(a == nil)
    assert.is_false(a == 1)
    assert.is_true(a ~= "x")
  end)

  it("gives its only element, and says so if there are more", function()
    assert.equal(2, flow.tensor({ { 2 } }):item())
    assert.is_true(flow.tensor(true):item())
    assert.truthy(message_of(function() flow.ones({ 3 }):item() end):find("exactly one element", 1, true))
  end)

  it("prints a header and NumPy's text", function()
    assert.equal("Tensor float32 {2, 2} cpu\n[[1. 2.]\n [3. 4.]]", tostring(flow.tensor { { 1, 2 }, { 3, 4 } }))
    assert.equal("loss: Tensor float32 {} cpu\n2.", "loss: " .. flow.tensor(2))
  end)

  it("lends a typed pointer to its elements", function()
    local a = flow.tensor { 1, 2, 3 }
    local p = a:data()
    assert.equal(3, p[2])
    p[0] = 5
    assert.same({ 5, 2, 3 }, a:totable())
    assert.equal("data(): this tensor is a view with gaps; take :contiguous() first",
      message_of(function() flow.ones({ 2, 2 })[{ {}, 1 }]:data() end))
    assert.equal(1, flow.ones({ 2, 2 })[{ {}, 1 }]:contiguous():data()[1])
  end)

  it("cannot be used after close", function()
    local a = flow.ones { 2 }
    a:close()
    assert.equal("Tensor (closed)", tostring(a))
    assert.equal("this tensor was closed", message_of(function() return a + 1 end))
  end)
end)

describe("flow.frombuffer", function()
  it("takes the bytes of a string, from an offset on, and leaves the string unchanged", function()
    local body = "abc\0\0\128\63\0\0\0\64"      -- the float32 numbers 1 and 2 after three bytes
    local t = flow.frombuffer(body, { 2 }, "float32", 3)
    assert.same({ 1, 2 }, t:totable())
    t[1] = 7
    assert.same({ 1, 2 }, flow.frombuffer(body, { 2 }, "float32", 3):totable())
    assert.same({ 97, 98, 99 }, flow.frombuffer(body, { 3 }, "uint8"):totable())
    assert.same({}, flow.frombuffer("", { 0 }, "float32"):totable())
    for i = 1, 200 do assert.equal(i % 256, flow.frombuffer(("x"):rep(i) .. string.char(i % 256), { 1 }, "uint8", i):item()) end
    assert.equal("flow.frombuffer: the shape takes 8 bytes from byte 4 on, the string has 11",
      message_of(function() flow.frombuffer(body, { 2 }, "float32", 4) end))
    for _, offset in ipairs { -1, 0.5, "1" } do
      assert.truthy(message_of(function() flow.frombuffer(body, { 1 }, "uint8", offset) end):find("offset"))
    end
    local array = ffi.new("int32_t[4]", { 1, 2, 3, 4 })
    assert.same({ 3, 4 }, flow.frombuffer(array, { 2 }, "int32", 8):totable())
    assert.truthy(message_of(function() flow.frombuffer(array, { 1 }, "int32", 2) end):find("begin at a multiple of 4 bytes"))
  end)

  it("does not start a collector that the host stopped", function()
    local native = require "flow.ffi"
    collectgarbage("stop")
    native.collect()
    flow.tidy(function() return 1 end)
    local runs = collectgarbage("isrunning")
    collectgarbage("restart")
    native.collect()
    assert.is_false(runs)
    assert.is_true(collectgarbage("isrunning"))
  end)

  it("shares memory both ways", function()
    local memory = ffi.new("float[4]", { 1, 2, 3, 4 })
    local a = flow.frombuffer(memory, { 2, 2 }, "float32")
    memory[0] = 10
    assert.equal(10, a[{ 1, 1 }]:item())
    a[2] = 0
    assert.equal(0, memory[3])
  end)

  it("keeps the memory alive for as long as any view of it", function()
    local freed = false
    local view = coroutine.wrap(function()       -- a separate stack: no left-over slot keeps the array alive
      local memory = ffi.gc(ffi.new("float[1024]"), function() freed = true end)
      return (flow.frombuffer(memory, { 1024 })[{ { 2, 3 } }])
    end)()
    for _ = 1, 4 do collectgarbage() end
    assert.is_false(freed)
    assert.same({ 0, 0 }, view:totable())
    view:close()
    for _ = 1, 64 do flow.frombuffer(ffi.new("float[1]"), { 1 }) end       -- lending more returns what nobody reads
    for _ = 1, 4 do collectgarbage() end
    assert.is_true(freed)
  end)

  it("refuses a shape that is larger than the array", function()
    assert.equal("flow.frombuffer: the shape takes 20 bytes, the array has 16",
      message_of(function() flow.frombuffer(ffi.new("float[4]"), { 5 }, "float32") end))
    assert.equal("flow.frombuffer: expected a string, a cdata array or a pointer, got a table",
      message_of(function() flow.frombuffer({ 1 }, { 1 }) end))
  end)
end)

describe("npy files", function()
  it("keep dtype, shape and values", function()
    local path = support.path()
    for _, dtype in ipairs { "float32", "float64", "int64", "uint8", "bool" } do
      flow.save_npy(path, flow.tensor({ { 1, 0, 1 }, { 0, 1, 1 } }, { dtype = dtype }))
      local a = flow.load_npy(path)
      assert.equal(dtype, a.dtype)
      assert.same({ { 1, 0, 1 }, { 0, 1, 1 } }, a:to("int32"):totable())
    end
    os.remove(path)
    assert.truthy(message_of(function() flow.load_npy(path) end):find(path, 1, true))
  end)
end)

describe("memory", function()
  it("is flat over many temporary tensors", function()
    collectgarbage()
    local native = require "flow.ffi"
    local a = flow.ones { 256, 256 }
    local before, most = native.C.flow_live_bytes(), 0
    for _ = 1, 1500 do
      local _ = a + 1
      most = math.max(most, native.C.flow_live_bytes())
    end
    assert.is_true(most - before < 300e6, ("%.0f MB at most"):format((most - before) / 1e6))
    collectgarbage()
    assert.is_true(native.C.flow_live_bytes() - before < 4 * 256 * 256 * 4)
  end)

  it("that runs out is collected once, and the call repeated", function()
    local native = require "flow.ffi"
    native.C.flow_fail_allocation(0)
    local a = flow.zeros { 8 }
    native.C.flow_fail_allocation(-1)
    assert.same({ 0, 0, 0, 0, 0, 0, 0, 0 }, a:totable())
  end)

  it("is released by flow.tidy", function()
    local native = require "flow.ffi"
    collectgarbage()
    local before = native.C.flow_live_bytes()
    local kept = flow.tidy(function()
      local t
      for i = 1, 20 do t = flow.full({ 100000 }, i) end
      return t
    end)
    assert.equal(20, kept[1]:item())
    assert.is_true(native.C.flow_live_bytes() - before < 2 * 400000 + 10000)
  end)
end)

describe("a position", function()
  it("may be a tensor of one number, as argmax gives it", function()
    local x = flow.tensor { { 1, 2, 3 }, { 4, 9, 6 } }
    assert.same({ 2, 9 }, x[{ {}, x[2]:argmax() }]:totable())
    assert.same({ 4, 9, 6 }, x[flow.tensor(2, { dtype = "int32" })]:totable())
    assert.same({ { 1, 2 } }, x[{ { 1, 1 }, { 1, x[2]:argmax() } }]:totable())
    x[{ x[{ {}, 1 }]:argmax(), 1 }] = 7
    assert.equal(7, x[2][1]:item())
    for position, text in pairs { [flow.tensor(1.5)] = "a whole number from 1", [flow.tensor(true)] = "a whole number from 1" } do
      local ok, message = pcall(function() return x[{ {}, position }] end)
      assert.is_false(ok)
      assert.truthy(message:find(text, 1, true), message)
    end
  end)
end)

describe("an assignment", function()
  it("takes values with axes of one element before those of the place, as NumPy does", function()
    local rows = flow.zeros { 3, 2 }
    rows[2] = flow.tensor { { 5, 6 } }
    rows[{ 3, 1 }] = flow.tensor { 7 }
    assert.same({ { 0, 0 }, { 5, 6 }, { 7, 0 } }, rows:totable())
    local ok, message = pcall(function() rows[1] = flow.ones { 2, 2 } end)
    assert.is_false(ok)
    assert.truthy(message:find("shape {2, 2} does not broadcast to shape {2}", 1, true), message)
  end)
end)

describe("nested lists", function()
  it("may hold tensors beside numbers, through which gradients go", function()
    local v = flow.Variable(0)
    local tape = flow.GradientTape()
    local turned = tape:record(function()
      local turn = flow.tensor { { 1, 0, 0 }, { 0, flow.cos(v), -flow.sin(v) }, { 0, flow.sin(v), flow.cos(v) } }
      return flow.sum(turn:matmul(flow.tensor { { 1 }, { 2 }, { 3 } })[2])
    end)
    assert.equal(2, turned:item())
    assert.equal(-3, tape:gradient(turned, v):item())
    assert.same({ { { 0, 0 } }, { { 1, 1 } } }, flow.convert_to_tensor({ { flow.zeros { 2 } }, { flow.ones { 2 } } }):totable())
    assert.equal("float64", flow.tensor({ { 1, flow.tensor(2) } }, { dtype = "float64" }).dtype)
    local ok, message = pcall(flow.tensor, { { 1, 0 }, { flow.tensor(2) } })
    assert.is_false(ok)
    assert.truthy(message:find("the list at [2] has 1 entries, its neighbours have 2", 1, true), message)
  end)
end)

describe("reloading the modules", function()
  it("keeps tensors made before usable", function()
    local old = flow.ones { 2 }
    for name in pairs(package.loaded) do
      if name:match("^flow") then package.loaded[name] = nil end
    end
    local again = require "flow"
    assert.same({ 3, 3 }, (old + again.full({ 2 }, 2)):totable())
    assert.is_true(again.is_tensor(old))
  end)
end)
