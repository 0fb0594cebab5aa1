-- reset.lua: what classes of recurrent layers, and of models, have for the states that stateful layers keep: states.lua.

-- states, of layers: the list of variables, which is empty before the first call. reset_state and reset_states set them to zeros.
return function(class, has_no_field)
  if not has_no_field then
    function class.fields.states(self) return require("flow.layers.recurrent.states").list(self) end
  end
  function class:reset_state() require("flow.layers.recurrent.states").reset(self) end
  function class:reset_states() require("flow.layers.recurrent.states").reset(self) end
end
