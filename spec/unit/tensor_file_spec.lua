-- tensor_file_spec.lua: files of named tensors as Lua objects.

local support = require "spec.support.init"
local flow = require "flow"
local tensor_file = require "flow.saving.tensor_file"

describe("tensor_file", function()
  local path
  before_each(function() path = support.path() end)
  after_each(function() os.remove(path) end)

  it("writes tensors and variables, and reads them back by name and position", function()
    local writer = tensor_file.writer()
    local variable = flow.Variable({ 1, 2, 3 })
    writer:checksums(true)
    writer:add("v", variable)
    writer:add("t", flow.tensor({ { 1, 2 } }, { dtype = "int64" }))
    writer:note("", "kind", "test")
    writer:note("t", "unit", "mm")
    writer:snapshot()
    variable:assign { 4, 5, 6 }
    writer:save(path, "safetensors")
    local file = tensor_file.open(path)
    assert.equal(2, file.count)
    assert.equal("t", file:name_of(1))
    assert.equal("int64", file:dtype("t"))
    assert.same({ 1, 2 }, file:shape(1))
    assert.same({ { 1, 2 } }, file:read("t"):totable())
    assert.equal(2, file:find("v"))
    assert.is_nil(file:find("w"))
    assert.is_true(file:has_checksum("v"))
    assert.equal("test", file:note("", "kind"))
    assert.equal("mm", file:note("t", "unit"))
    assert.is_nil(file:note("", "unit"))
    file:verify()
    file:read_into("v", variable)
    assert.same({ 1, 2, 3 }, variable:totable())
    assert.error_matches(function() file:read("vv") end, 'has no tensor "vv"; did you mean "v"%?')
    file:close()
    assert.error_matches(function() file:read("v") end, "was closed")
  end)

  it("counts a variable's version up when it is read into", function()
    local writer, variable = tensor_file.writer(), flow.Variable({ 1, 2 })
    writer:add("v", variable)
    writer:save(path, "safetensors")
    local before = require("flow.ffi").C.flow_variable_version(variable.handle)
    tensor_file.open(path):read_into(1, variable)
    assert.is_true(require("flow.ffi").C.flow_variable_version(variable.handle) > before)
  end)

  it("raises at the caller's line for what it cannot take", function()
    local writer = tensor_file.writer()
    assert.error_matches(function() writer:add("x", 3) end, "expected a tensor")
    assert.error_matches(function() writer:add(nil, flow.zeros { 1 }) end, "the name of a tensor is a string")
    assert.error_matches(function() tensor_file.open("/nowhere/x") end, "cannot open /nowhere/x")
  end)
end)
