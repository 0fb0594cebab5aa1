-- hints_spec.lua: what flowlua says of a global that a script uses as in Python and has not made, and of a field that is called, in a
-- script and at the prompt.
local support = require "spec.support.init"

local SIZE = ": x.size is how many elements there are, x.shape[1] the length of the first axis\n"

describe("a message of Lua's is told what to do:", function()
  for code, said in pairs {
    ['x = tf.keras'] = "attempt to index global 'tf' (a nil value): it is flow: local tf = flow\n",
    ['keras.Sequential()'] = "attempt to index global 'keras' (a nil value): it is flow.keras: local keras = flow.keras\n",
    ['print(np.zeros(3))'] = "attempt to index global 'np' (a nil value): arrays are tensors: flow.tensor, flow.zeros, flow.load_npy\n",
    ['print(len {})'] = "attempt to call global 'len' (a nil value): a list has #list entries, a data set ds:len()\n",
    ['print(nobody.knows)'] = "attempt to index global 'nobody' (a nil value)\n",
    ['print(flow.ones { 2 }:size(1))'] = "attempt to call method 'size' (a number value)" .. SIZE,
    ['print(flow.ones { 2 }:dtype())'] = "attempt to call method 'dtype' (a string value): x.dtype is a text, x:to 'int32' converts\n",
    ['print(flow.ones { 2 }:rank())'] = "attempt to call method 'rank' (a number value): it is a field: x.rank, without a call\n",
    ['print(flow.ones { 2 }:shape(1))'] = "a shape is a list, not a function: x.shape[1] is the length of the first axis\n",
    ['local x = {} x:none()'] = "attempt to call method 'none' (a nil value)\n",
  } do
    it(code, function()
      local file = support.file("script.lua", code)
      local output, status = support.run(("FLOWLUA_PATH=%slua %s %s 2>&1"):format(support.root, support.program, file))
      assert.equal(1, status)
      assert.truthy(output:find("script.lua:1: " .. said, 1, true), output)
      output = support.run(("FLOWLUA_PATH=%slua %s <%s 2>&1"):format(support.root, support.program, file))
      assert.truthy(output:find(":1: " .. said, 1, true), output)
    end)
  end
end)
