--- Kernels for GPUs that are loaded from a folder, in place of those of the build: FLOW_CUDA_KERNELS. The emulated device has two images,
--- "families" and "libraries", and knows no others.
local emulated = require "spec.support.emulated"
local support = require "spec.support.init"

if emulated.missing() then
  pending("kernels of devices: " .. emulated.missing())
  return
end

local script = support.file("use.lua", [[
  local flow = require "flow"
  local ok, why = pcall(function() return (flow.zeros({ 3 }, { device = "gpu:0" }) + 1):sum():item() end)
  print(ok, why)
]])

local function use(folder)
  return (support.run(("FLOW_PLUGINS=%s FLOW_CUDA_KERNELS=%s FLOWLUA_PATH=%slua %s %s 2>&1"):format(emulated.folder, folder, support.root,
    support.program, script)))
end

describe("kernels of a folder", function()
  it("are the build's where it has none", function()
    assert.matches("^true\t3\n", use(support.file("empty", ""):match("^(.*)/")))
  end)

  it("are named where they are not machine code, or cannot be read", function()
    local path = support.file("families.fatbin", "these are not the kernels")
    local text = use(path:match("^(.*)/"))
    assert.is_truthy(text:find("gpu:0: loading the kernels of " .. path .. ": device kernel image is invalid", 1, true), text)
    support.write(path, "")
    assert.matches("gpu:0: loading the kernels of .*families%.fatbin, which cannot be read", use(path:match("^(.*)/")))
  end)
end)
