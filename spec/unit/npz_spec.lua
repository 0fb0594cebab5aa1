-- npz_spec.lua: archives of arrays by flow.save_npz and flow.load_npz: what is written is read back, member by member the bytes of
-- flow.save_npy, and a failed save leaves the file that was there.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"

local message_of = support.message_of
local path = support.folder() .. "/x.npz"

local function bytes_of(archive_path, member)
  local out, text, count = native.out "flow_archive", native.array("const char *", 1), native.array("double", 1)
  native.check(native.C.flow_archive_open(archive_path, out))
  local archive = native.own(out, native.C.flow_archive_release)
  native.check(native.C.flow_archive_text(archive, member, text, count))
  return native.string(text[0], count[0])
end

describe("flow.save_npz", function()
  it("writes arrays of every dtype and shape that load_npz reads, as save_npy has them", function()
    local arrays, count = {}, 0
    for _, dtype in ipairs { "float64", "float32", "float16", "int64", "int32", "uint8", "bool" } do
      for i, shape in ipairs { {}, { 3 }, { 2, 3, 4 }, { 0, 3 } } do
        arrays[dtype .. "_" .. i] = (flow.random.uniform(shape, { maxval = 9, seed = i })):to(dtype)
      end
    end
    arrays["a/b c"] = flow.ones { 2, 3 }:transpose()      -- not contiguous
    flow.save_npz(path, arrays)
    for name, found in pairs(flow.load_npz(path)) do
      local x = arrays[name]
      assert.same({ x.dtype, x.shape }, { found.dtype, found.shape })
      assert.same(x:totable(), found:totable())
      assert.same(x:totable(), flow.load_npz(path, name):totable())
      flow.save_npy(path .. ".npy", x)
      assert.equal(support.read(path .. ".npy"), bytes_of(path, name .. ".npy"))
      count = count + 1
    end
    assert.equal(7 * 4 + 1, count)
  end)

  it("takes lists and numbers, and no arrays at all", function()
    flow.save_npz(path, { x = { { 1, 2 }, { 3, 4 } }, y = 5 })
    local found = flow.load_npz(path)
    assert.same({ { 1, 2 }, { 3, 4 } }, found.x:totable())
    assert.equal(5, found.y:item())
    flow.save_npz(path, {})
    assert.same({}, flow.load_npz(path))
  end)

  it("leaves the old file where it fails", function()
    flow.save_npz(path, { x = 1 })
    local before = support.read(path)
    local message = message_of(function() flow.save_npz(path, { a = 1, x = flow.ones({ 2 }, { dtype = "bfloat16" }) }) end)
    assert.truthy(message:find("NumPy has no bfloat16: cast the tensor to float32 before saving it as x.npy", 1, true), message)
    message = message_of(function() flow.save_npz(path, { flow.ones { 2 } }) end)
    assert.truthy(message:find("flow.save_npz: arrays have names, flow.save_npz(path, { x = tensor }); got the number 1", 1, true), message)
    message = message_of(function() flow.save_npz(path, { ["../x"] = 1 }) end)
    assert.truthy(message:find("../x.npy", 1, true), message)
    assert.equal(before, support.read(path))
  end)
end)

describe("flow.sequence_mask", function()
  it("says which places the lengths have", function()
    local lengths = flow.tensor({ { 0, 2 }, { 3, 1 } }, { dtype = "int64" })
    local mask = flow.sequence_mask(lengths, 2)
    assert.same({ "bool", { { { false, false }, { true, true } }, { { true, true }, { true, false } } } }, { mask.dtype, mask:totable() })
    assert.same({ { 0, 0, 0 }, { 1, 1, 0 } }, flow.sequence_mask(lengths[1], { maxlen = 3, dtype = "int32" }):totable())
    assert.same({ 2, 2, 3 }, flow.sequence_mask(lengths).shape)
    assert.same({ true, false }, flow.fn(function(n) return flow.sequence_mask(n, 2) end)(flow.tensor(1, { dtype = "int32" })):totable())
    local message = message_of(function() flow.fn(function(n) return flow.sequence_mask(n) end)(lengths) end)
    assert.truthy(message:find("flow.sequence_mask without maxlen: this tensor has no value while f is traced", 1, true), message)
  end)
end)
