-- cdef_spec.lua: the FFI declarations are flow.h's, and the library has every function of them.
local support = require "spec.support.init"
local native = require "flow.ffi"

describe("lua/flow/cdef.lua", function()
  it("is what scripts/gen_cdef makes of flow.h", function()
    local expected = support.run(("luajit %sscripts/gen_cdef --print"):format(support.root))
    local file = assert(io.open(support.root .. "lua/flow/cdef.lua", "rb"))
    local found = file:read("*a")
    file:close()
    assert.is_true(expected == found, "lua/flow/cdef.lua is out of date: run scripts/gen_cdef")
  end)

  it("declares only what the library has", function()
    local missing, count = {}, 0
    for name in pairs(require("flow.cdef").functions) do
      count = count + 1
      if not pcall(function() return native.C[name] end) then missing[#missing + 1] = name end
    end
    assert.is_true(count > 100)
    assert.same({}, missing)
  end)
end)
