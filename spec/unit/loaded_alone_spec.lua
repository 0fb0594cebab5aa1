-- loaded_alone_spec.lua: files of composed operations are loaded when one of their operations is used, in any order: each finds all that it
-- uses of the room's tools, whatever else is loaded, and has no global names.
local support = require "spec.support.init"

-- The file itself, and each name that it uses of a module that it requires from its own room.
local CHECK = [[
local path, name = arg[1], arg[2]
require "flow"
require(name)
local file = assert(io.open(path))
local text, missing = file:read "*a", {}
file:close()
for alias, module in text:gmatch 'local (%w+) = require "(flow%.tensor%.composed%.%w+)"' do
  local loaded = require(module)
  for field in text:gmatch("%f[%w]" .. alias .. "%.([%w_]+)") do
    local ok, value = pcall(function() return loaded[field] end)
    local is_made = text:find("function " .. alias .. "%." .. field)
    if (not ok or value == nil) and not is_made then missing[#missing + 1] = alias .. "." .. field end
  end
end
print(table.concat(missing, " "))
]]

describe("a file of composed operations, loaded alone,", function()
  local script = support.file("check.lua", CHECK)
  local lua = os.getenv "FLOW_SANITIZED" and support.command or "luajit"
  local list = io.popen(("grep -rl 'flow.tensor.composed' %slua/flow --include=*.lua"):format(support.root))
  local count = 0
  for path in list:lines() do
    count = count + 1
    local name = path:match "lua/(flow/.*)%.lua$":gsub("/init$", ""):gsub("/", ".")
    it(name .. " finds what it uses", function()
      assert.equal("\n", support.run(("%s %s %s %s"):format(lua, script, path, name)))
    end)
  end
  list:close()
  it("are looked for in the right place", function() assert.is_true(count > 15, count) end)
end)
