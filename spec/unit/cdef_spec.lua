-- cdef_spec.lua: the FFI declarations are flow.h's, and the library has every function of them.
local support = require "spec.support.init"
local native = require "flow.ffi"

local read = support.read

describe("lua/flow/cdef", function()
  it("is what scripts/gen_cdef makes of flow.h", function()
    local folder = support.folder()
    support.run(("luajit %sscripts/gen_cdef %s"):format(support.root, folder))
    for _, name in ipairs { "types.lua", "functions.lua" } do
      local same = read(support.root .. "lua/flow/cdef/" .. name) == read(folder .. "/" .. name)
      assert.is_true(same, "lua/flow/cdef is out of date: run scripts/gen_cdef")
    end
  end)

  it("declares only what the library has", function()
    local missing, count = {}, 0
    for name in require("flow.cdef.functions"):gmatch ";(flow_[%w_]+)=" do
      count = count + 1
      if not pcall(function() return native.C[name] end) then missing[#missing + 1] = name end
    end
    assert.is_true(count > 100)
    assert.same({}, missing)
  end)
end)
