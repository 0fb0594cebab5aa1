-- many_parts_spec.lua: reading a file takes work in proportion to its parts: valgrind counts the instructions for files of which one has
-- four times the parts of the other.
local support = require "spec.support.init"

local FEW, MANY = 1000, 4000
local MOST = 6      -- times as many instructions for four times the parts: sorting is a little more than proportional

describe("a file of many parts", function()
  local folder = support.folder()
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function program(before, ...)
    return (before or "") .. " " .. support.program .. " " .. support.root .. "spec/support/many_parts.lua " .. table.concat({ ... }, " ")
  end

  local function write(kind, parts)
    local path = ("%s/%s%d"):format(folder, kind, parts)
    assert.equal("", support.run(program(nil, "write", kind, parts, path)))
    return path
  end

  for kind, counted in pairs { npz = "flow_archive_npy", model = "flow_model_load", backwards = "flow_model_load" } do
    it("is read with work in proportion to them: " .. kind, function()
      local reason = support.cannot_count_instructions()
      if reason then return pending(reason) end
      local found = {}
      for i, parts in ipairs { FEW, MANY } do
        local tool = "FLOW_ISA=avx2 valgrind --tool=callgrind --collect-atstart=no --toggle-collect=" .. counted ..
          " --callgrind-out-file=/dev/null"
        local text = support.run(program(tool, "read", kind, write(kind, parts)))
        assert.truthy(text:find("read\t" .. (kind == "npz" and parts or "all"), 1, true), text)
        found[i] = tonumber(text:match "Collected : (%d+)")
      end
      assert.is_true(found[2] / found[1] <= MOST, ("%d and %d instructions"):format(found[1], found[2]))
    end)
  end

  it("is refused where its order makes reading take long", function()
    local text = support.run(program(nil, "read", "zigzag", write("zigzag", MANY)))
    assert.truthy(text:find("the layers of the model \"m\" are in no order in which they could run", 1, true), text)
  end)
end)
