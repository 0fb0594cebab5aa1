-- null_pointers_spec.lua: no function of the C API crashes where a pointer is NULL; a status says which one it is. The calls are made by
-- spec/support/null_calls.lua, of all prototypes of the headers.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"

local C = native.C

-- What the calls wrote: a line for each, and the function at which they ended, or nil.
local function calls_from(folder, number)
  local headers = support.run(("ls %sbindings/flow*.h"):format(support.root)):gsub("\n", " ")
  local run = "cd %s && FLOW_HEADERS='%s' FLOW_MODEL=%s/model.keras LUA_PATH='%slua/?.lua;;' %s %sspec/support/null_calls.lua %d"
  local text = support.run(run:format(folder, headers, folder, support.root, "luajit", support.root, number))
  local last = ""
  for line in text:gmatch "[^\n]+" do
    if line:find "^%d+ flow_" then last = line end
  end
  return text, not text:find("\ndone\n", 1, true) and last or nil
end

describe("NULL", function()
  it("crashes no function of the C API", function()
    if os.getenv "FLOW_SANITIZED" then return pending "luajit, which the calls are made from, cannot load a build with sanitizers" end
    local folder = support.folder()
    flow.Sequential({ flow.layers.Input { 2 }, flow.layers.Dense(1) }):save(folder .. "/model.keras")
    local wrong, number = {}, 1
    for _ = 1, 20 do      -- more need not be listed
      local text, stopped = calls_from(folder, number)
      for name in text:gmatch "SILENT (flow_[%w_]+)" do wrong[#wrong + 1] = name .. " fails without a sentence" end
      if not stopped then break end
      if not stopped:match "^%d+" then error(text) end
      wrong[#wrong + 1] = "a crash in " .. stopped
      number = tonumber(stopped:match "^%d+") + 1
    end
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("is named by the message", function()
    local function says(expected, status)
      assert.equal(C.FLOW_INVALID_ARGUMENT, status)
      assert.equal(expected, native.string(C.flow_last_error()))
    end
    local x = flow.ones { 2 }
    local pointer = native.pointer(x)
    local out = native.out "flow_tensor"
    says("flow_tensor_scalar: out is NULL", C.flow_tensor_scalar(0, 1, nil))
    says("flow_tensor_new: out is NULL", C.flow_tensor_new(0, 0, nil, nil))
    says("flow_tensor_new: shape is NULL", C.flow_tensor_new(0, 1, nil, out))
    says("flow_mean: x is NULL", C.flow_mean(native.context, nil, nil, out))
    says("flow_variable_new: name is NULL", C.flow_variable_new(pointer, nil, 1, 0, native.out "flow_variable"))
    says("flow_dataset_take: out is NULL", C.flow_dataset_take(nil, 1, nil))
    assert.is_true(C.flow_cluster_source(nil) == nil)
    says("flow_instance_run: instance is NULL", C.flow_instance_run(native.context, nil, nil, 0, nil))
  end)

  it("is allowed where a comment says so, and for what has no elements", function()
    local out = native.out "flow_tensor"
    assert.equal(0, C.flow_tensor_new(0, 0, nil, out))
    local scalar = native.tensor(out[0])
    assert.equal(0, C.flow_tensor_set(native.pointer(scalar), nil, 3))
    assert.equal(3, scalar:item())
    assert.equal(1, C.flow_tensor_format(native.pointer(scalar), nil, 0) > 0 and 1 or 0)
    assert.equal(0, C.flow_tensor_set_mask(native.pointer(scalar), nil))
    assert.equal(0, C.flow_mean(native.context, native.pointer(scalar), nil, out))
    native.tensor(out[0])
    C.flow_tensor_release(nil)
  end)
end)
