-- interrupt_anywhere_spec.lua: Ctrl-C in plain luajit is an error between any two instructions. Wherever it ends a fit, a step of a
-- strategy or a loop that the user writes, no trace, tape, scope or device stays entered, and models go on as before.
local support = require "spec.support.init"

describe("an interrupt in plain luajit", function()
  for _, case in ipairs { "fit", "strategy", "custom loop" } do
    it("leaves everything whole wherever it comes: " .. case, function()
      if os.getenv "FLOW_SANITIZED" then return pending("plain luajit cannot load a build with sanitizers") end
      local text, code = support.run(("luajit %q %q 1000"):format(support.root .. "spec/support/interrupt_anywhere.lua", case))
      assert.equal(0, code, text)
      assert.truthy(text:find("whole\t1000", 1, true), text)
    end)
  end
end)
