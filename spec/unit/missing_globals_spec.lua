-- missing_globals_spec.lua: what flowlua says of a global that a script uses as in Python and has not made.
local support = require "spec.support.init"

describe("a global that is missing", function()
  for code, said in pairs {
    ['x = tf.keras'] = "attempt to index global 'tf' (a nil value): it is flow: local tf = flow\n",
    ['keras.Sequential()'] = "attempt to index global 'keras' (a nil value): it is flow.keras: local keras = flow.keras\n",
    ['print(np.zeros(3))'] = "attempt to index global 'np' (a nil value): arrays are tensors: flow.tensor, flow.zeros, flow.load_npy\n",
    ['print(len {})'] = "attempt to call global 'len' (a nil value): a list has #list entries, a data set ds:len()\n",
    ['print(nobody.knows)'] = "attempt to index global 'nobody' (a nil value)\n",
  } do
    it("is told how it is made: " .. code, function()
      local output, status = support.run(("FLOWLUA_PATH=%slua %s %s 2>&1"):format(support.root, support.program,
        support.file("script.lua", code)))
      assert.equal(1, status)
      assert.truthy(output:find("script.lua:1: " .. said, 1, true), output)
    end)
  end
end)
