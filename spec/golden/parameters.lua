-- parameters.lua: the parameters of Keras 3.15.1's functions. Made by parameters.py.
return {
  ["ops"] = [[
    abs: x; absolute: x; adaptive_average_pool: inputs output_size data_format; adaptive_max_pool: inputs output_size data_format; add:
    x1 x2; all: x axis keepdims; allclose: x1 x2 rtol atol equal_nan; amax: x axis keepdims; amin: x axis keepdims; angle: x; any: x
    axis keepdims; append: x1 x2 axis; arange: start stop step dtype; arccos: x; arccosh: x; arcsin: x; arcsinh: x; arctan: x; arctan2:
    x1 x2; arctanh: x; argmax: x axis keepdims; argmin: x axis keepdims; argpartition: x kth axis; argsort: x axis; array: x dtype;
    array_split: x indices_or_sections axis; associative_scan: f elems reverse axis; average: x axis weights; average_pool: inputs
    pool_size strides padding data_format; bartlett: x; batch_normalization: x mean variance axis offset scale epsilon;
    binary_crossentropy: target output from_logits; bincount: x weights minlength sparse; bitwise_and: x y; bitwise_invert: x;
    bitwise_left_shift: x y; bitwise_not: x; bitwise_or: x y; bitwise_right_shift: x y; bitwise_xor: x y; blackman: x; broadcast_to: x
    shape; cast: x dtype; categorical_crossentropy: target output from_logits axis; cbrt: x; cdist: x y; ceil: x; celu: x alpha;
    cholesky: x upper; cholesky_inverse: x upper; clip: x x_min x_max; concatenate: xs axis; cond: pred true_fn false_fn; conj: x;
    conjugate: x; conv: inputs kernel strides padding data_format dilation_rate; conv_transpose: inputs kernel strides padding
    output_padding data_format dilation_rate; convert_to_numpy: x; convert_to_tensor: x dtype sparse ragged; copy: x; corrcoef: x;
    correlate: x1 x2 mode; cos: x; cosh: x; count_nonzero: x axis; cross: x1 x2 axisa axisb axisc axis; ctc_decode: inputs
    sequence_lengths strategy beam_width top_paths merge_repeated mask_index; ctc_loss: target output target_length output_length
    mask_index; cumprod: x axis dtype; cumsum: x axis dtype; custom_gradient: f; deg2rad: x; depth_to_space: x block_size data_format;
    depthwise_conv: inputs kernel strides padding data_format dilation_rate; det: x; diag: x k; diagflat: x k; diagonal: x offset axis1
    axis2; diff: a n axis; digitize: x bins; divide: x1 x2; divide_no_nan: x1 x2; dot: x1 x2; dot_product_attention: query key value
    bias mask scale is_causal flash_attention attn_logits_soft_cap; dsplit: x indices_or_sections; dstack: xs; dtype: x; eig: x; eigh:
    x; einsum: subscripts; elu: x alpha; empty: shape dtype; empty_like: x dtype; equal: x1 x2; erf: x; erfc: x; erfinv: x; exp: x;
    exp2: x; expand_dims: x axis; expm1: x; extract_sequences: x sequence_length sequence_stride; eye: N M k dtype; fabs: x; fft: x;
    fft2: x; flip: x axis; fliplr: x; flipud: x; floor: x; floor_divide: x1 x2; fmax: x1 x2; fmin: x1 x2; fmod: x1 x2; fold: x
    output_size kernel_size dilation padding stride; fori_loop: lower upper body_fun init_val; full: shape fill_value dtype; full_like:
    x fill_value dtype; gcd: x1 x2; gelu: x approximate; geomspace: start stop num endpoint dtype axis; get_item: x key; glu: x axis;
    greater: x1 x2; greater_equal: x1 x2; hamming: x; hanning: x; hard_shrink: x threshold; hard_sigmoid: x; hard_silu: x; hard_swish:
    x; hard_tanh: x; heaviside: x1 x2; histogram: x bins range; hsplit: x indices_or_sections; hstack: xs; hypot: x1 x2; i0: x;
    identity: n dtype; ifft2: x; imag: x; in_top_k: targets predictions k; inner: x1 x2; inv: x; irfft: x fft_length; is_tensor: x;
    isclose: x1 x2 rtol atol equal_nan; isfinite: x; isin: x1 x2 assume_unique invert; isinf: x; isnan: x; isneginf: x; isposinf: x;
    isreal: x; istft: x sequence_length sequence_stride fft_length length window center; jvp: fun primals tangents has_aux; kaiser: x
    beta; kron: x1 x2; layer_normalization: x gamma beta axis epsilon; lcm: x1 x2; ldexp: x1 x2; leaky_relu: x negative_slope;
    left_shift: x y; less: x1 x2; less_equal: x1 x2; linspace: start stop num endpoint retstep dtype axis; log: x; log10: x; log1p: x;
    log2: x; log_sigmoid: x; log_softmax: x axis; logaddexp: x1 x2; logaddexp2: x1 x2; logdet: x; logical_and: x1 x2; logical_not: x;
    logical_or: x1 x2; logical_xor: x1 x2; logspace: start stop num endpoint base dtype axis; logsumexp: x axis keepdims; lstsq: a b
    rcond; lu_factor: x; map: f xs; matmul: x1 x2; matrix_rank: x tol; max: x axis keepdims initial; max_pool: inputs pool_size strides
    padding data_format; maximum: x1 x2; mean: x axis keepdims; median: x axis keepdims; meshgrid: indexing; min: x axis keepdims
    initial; minimum: x1 x2; mod: x1 x2; moments: x axes keepdims synchronized; moveaxis: x source destination; multi_hot: inputs
    num_classes axis dtype sparse; multiply: x1 x2; nan_to_num: x nan posinf neginf; nanargmax: x axis keepdims; nanargmin: x axis
    keepdims; nancumprod: x axis dtype; nancumsum: x axis dtype; nanmax: x axis keepdims; nanmean: x axis keepdims; nanmedian: x axis
    keepdims; nanmin: x axis keepdims; nanpercentile: x q axis method keepdims; nanprod: x axis keepdims; nanquantile: x q axis method
    keepdims; nanstd: x axis keepdims; nansum: x axis keepdims; nanvar: x axis keepdims; ndim: x; negative: x; nextafter: x1 x2;
    nonzero: x; norm: x ord axis keepdims; normalize: x axis order epsilon; not_equal: x1 x2; one_hot: x num_classes axis dtype sparse;
    ones: shape dtype; ones_like: x dtype; outer: x1 x2; pad: x pad_width mode constant_values; percentile: x q axis method keepdims;
    pinv: x rcond; polar: abs_ angle; power: x1 x2; prod: x axis keepdims dtype; psnr: x1 x2 max_val; ptp: x axis keepdims; qr: x mode;
    quantile: x q axis method keepdims; rad2deg: x; ravel: x; real: x; rearrange: tensor pattern; reciprocal: x; relu: x; relu6: x;
    repeat: x repeats axis; reshape: x newshape; rfft: x fft_length; right_shift: x y; rms_normalization: x scale axis epsilon; roll: x
    shift axis; rot90: array k axes; round: x decimals; rsqrt: x; saturate_cast: x dtype; scan: f init xs length reverse unroll;
    scatter: indices values shape; scatter_update: inputs indices updates reduction; searchsorted: sorted_sequence values side;
    segment_max: data segment_ids num_segments sorted; segment_min: data segment_ids num_segments sorted; segment_prod: data segment_ids
    num_segments sorted; segment_sum: data segment_ids num_segments sorted; select: condlist choicelist default; selu: x;
    separable_conv: inputs depthwise_kernel pointwise_kernel strides padding data_format dilation_rate; shape: x; sigmoid: x; sign: x;
    signbit: x; silu: x; sin: x; sinc: x; sinh: x; size: x; slice: inputs start_indices shape; slice_update: inputs start_indices
    updates; slogdet: x; soft_shrink: x threshold; softmax: x axis; softplus: x; softsign: x; solve: a b; solve_triangular: a b lower;
    sort: x axis; space_to_depth: x block_size data_format; sparse_categorical_crossentropy: target output from_logits axis;
    sparse_plus: x; sparse_sigmoid: x; sparsemax: x axis; split: x indices_or_sections axis; sqrt: x; square: x; squareplus: x b;
    squeeze: x axis; stack: x axis; std: x axis keepdims; stft: x sequence_length sequence_stride fft_length window center;
    stop_gradient: variable; subtract: x1 x2; sum: x axis keepdims; svd: x full_matrices compute_uv; swapaxes: x axis1 axis2; swish: x;
    switch: index branches; take: x indices axis; take_along_axis: x indices axis; tan: x; tanh: x; tanh_shrink: x; tensordot: x1 x2
    axes; threshold: x threshold default_value; tile: x repeats; top_k: x k sorted; trace: x offset axis1 axis2; transpose: x axes;
    trapezoid: y x dx axis; tri: N M k dtype; tril: x k; triu: x k; true_divide: x1 x2; trunc: x; unfold: x kernel_size dilation padding
    stride; unique: x sorted return_index return_inverse return_counts axis size fill_value; unravel_index: indices shape; unstack: x
    num axis; vander: x N increasing; var: x axis keepdims; vdot: x1 x2; vectorize: pyfunc excluded signature; vectorized_map: function
    elements; view: x dtype; view_as_complex: x; view_as_real: x; vsplit: x indices_or_sections; vstack: xs; where: condition x1 x2;
    while_loop: cond body loop_vars maximum_iterations; zeros: shape dtype; zeros_like: x dtype;
  ]],
  ["ops.image"] = [[
    affine_transform: images transform interpolation fill_mode fill_value data_format; crop_images: images top_cropping left_cropping
    bottom_cropping right_cropping target_height target_width data_format; elastic_transform: images alpha sigma interpolation fill_mode
    fill_value seed data_format; extract_patches: images size strides dilation_rate padding data_format; extract_patches_3d: volumes
    size strides dilation_rate padding data_format; gaussian_blur: images kernel_size sigma data_format; hsv_to_rgb: images data_format;
    map_coordinates: inputs coordinates order fill_mode fill_value; pad_images: images top_padding left_padding bottom_padding
    right_padding target_height target_width data_format; perspective_transform: images start_points end_points interpolation fill_value
    data_format; resize: images size interpolation antialias crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value data_format;
    rgb_to_grayscale: images data_format; rgb_to_hsv: images data_format; scale_and_translate: images output_shape scale translation
    spatial_dims method antialias; sobel_edges: images data_format; ssim: image1 image2 max_val filter_size filter_sigma k1 k2
    data_format;
  ]],
  ["ops.linalg"] = [[
    cholesky: x upper; cholesky_inverse: x upper; det: x; eig: x; eigh: x; inv: x; jvp: fun primals tangents has_aux; lstsq: a b rcond;
    lu_factor: x; matrix_rank: x tol; norm: x ord axis keepdims; pinv: x rcond; qr: x mode; solve: a b; solve_triangular: a b lower;
    svd: x full_matrices compute_uv;
  ]],
  ["ops.nn"] = [[
    adaptive_average_pool: inputs output_size data_format; adaptive_max_pool: inputs output_size data_format; average_pool: inputs
    pool_size strides padding data_format; batch_normalization: x mean variance axis offset scale epsilon; binary_crossentropy: target
    output from_logits; categorical_crossentropy: target output from_logits axis; celu: x alpha; conv: inputs kernel strides padding
    data_format dilation_rate; conv_transpose: inputs kernel strides padding output_padding data_format dilation_rate; ctc_decode:
    inputs sequence_lengths strategy beam_width top_paths merge_repeated mask_index; ctc_loss: target output target_length output_length
    mask_index; depth_to_space: x block_size data_format; depthwise_conv: inputs kernel strides padding data_format dilation_rate;
    dot_product_attention: query key value bias mask scale is_causal flash_attention attn_logits_soft_cap; elu: x alpha; fold: x
    output_size kernel_size dilation padding stride; gelu: x approximate; glu: x axis; hard_shrink: x threshold; hard_sigmoid: x;
    hard_silu: x; hard_swish: x; hard_tanh: x; layer_normalization: x gamma beta axis epsilon; leaky_relu: x negative_slope;
    log_sigmoid: x; log_softmax: x axis; max_pool: inputs pool_size strides padding data_format; moments: x axes keepdims synchronized;
    multi_hot: inputs num_classes axis dtype sparse; normalize: x axis order epsilon; one_hot: x num_classes axis dtype sparse; polar:
    abs_ angle; psnr: x1 x2 max_val; relu: x; relu6: x; rms_normalization: x scale axis epsilon; selu: x; separable_conv: inputs
    depthwise_kernel pointwise_kernel strides padding data_format dilation_rate; sigmoid: x; silu: x; soft_shrink: x threshold; softmax:
    x axis; softplus: x; softsign: x; space_to_depth: x block_size data_format; sparse_categorical_crossentropy: target output
    from_logits axis; sparse_plus: x; sparse_sigmoid: x; sparsemax: x axis; squareplus: x b; swish: x; tanh_shrink: x; threshold: x
    threshold default_value; unfold: x kernel_size dilation padding stride;
  ]],
  ["random"] = [[
    SeedGenerator: seed name; beta: shape alpha beta dtype seed; binomial: shape counts probabilities dtype seed; categorical: logits
    num_samples dtype seed; dropout: inputs rate noise_shape seed; gamma: shape alpha dtype seed; normal: shape mean stddev dtype seed;
    randint: shape minval maxval dtype seed; shuffle: x axis seed; truncated_normal: shape mean stddev dtype seed; uniform: shape minval
    maxval dtype seed;
  ]],
  ["utils"] = [[
    CustomObjectScope: custom_objects; FeatureSpace: features output_mode crosses crossing_dim hashing_dim num_discretization_bins name;
    Progbar: target width verbose interval stateful_metrics stateless_metrics unit_name; PyDataset: workers use_multiprocessing
    max_queue_size; Sequence: workers use_multiprocessing max_queue_size; array_to_img: x data_format scale dtype;
    audio_dataset_from_directory: directory labels label_mode class_names batch_size sampling_rate output_sequence_length ragged shuffle
    seed validation_split subset follow_links verbose; clear_session: free_memory; custom_object_scope: custom_objects;
    deserialize_keras_object: config custom_objects safe_mode; get_file: fname origin untar md5_hash file_hash cache_subdir
    hash_algorithm extract archive_format cache_dir force_download; get_registered_name: obj; get_registered_object: name custom_objects
    module_objects; get_source_inputs: tensor; image_dataset_from_directory: directory labels label_mode class_names color_mode
    batch_size image_size shuffle seed validation_split subset interpolation follow_links crop_to_aspect_ratio pad_to_aspect_ratio
    data_format format verbose; img_to_array: img data_format dtype; is_keras_tensor: x; load_img: path color_mode target_size
    interpolation keep_aspect_ratio; model_to_dot: model show_shapes show_dtype show_layer_names rankdir expand_nested dpi subgraph
    show_layer_activations show_trainable splines; normalize: x axis order; pack_x_y_sample_weight: x y sample_weight; pad_sequences:
    sequences maxlen dtype padding truncating value; plot_model: model to_file show_shapes show_dtype show_layer_names rankdir
    expand_nested dpi show_layer_activations show_trainable splines; register_keras_serializable: package name; save_img: path x
    data_format file_format scale; serialize_keras_object: obj; set_random_seed: seed; split_dataset: dataset left_size right_size
    shuffle seed preferred_backend; standardize_dtype: dtype; text_dataset_from_directory: directory labels label_mode class_names
    batch_size max_length shuffle seed validation_split subset follow_links format verbose; timeseries_dataset_from_array: data targets
    sequence_length sequence_stride sampling_rate batch_size shuffle seed start_index end_index format; to_categorical: x num_classes;
    unpack_x_y_sample_weight: data;
  ]],
  ["layers"] = [[
    Activation: activation; ActivityRegularization: l1 l2; AdaptiveAveragePooling1D: output_size data_format; AdaptiveAveragePooling2D:
    output_size data_format; AdaptiveAveragePooling3D: output_size data_format; AdaptiveMaxPooling1D: output_size data_format;
    AdaptiveMaxPooling2D: output_size data_format; AdaptiveMaxPooling3D: output_size data_format; AdditiveAttention: use_scale dropout;
    AlphaDropout: rate noise_shape seed; Attention: use_scale score_mode dropout seed; AugMix: value_range num_chains chain_depth factor
    alpha all_ops interpolation seed data_format; AutoContrast: value_range; AveragePooling1D: pool_size strides padding data_format
    name; AveragePooling2D: pool_size strides padding data_format name; AveragePooling3D: pool_size strides padding data_format name;
    AvgPool1D: pool_size strides padding data_format name; AvgPool2D: pool_size strides padding data_format name; AvgPool3D: pool_size
    strides padding data_format name; BatchNormalization: axis momentum epsilon center scale beta_initializer gamma_initializer
    moving_mean_initializer moving_variance_initializer beta_regularizer gamma_regularizer beta_constraint gamma_constraint renorm
    renorm_clipping renorm_momentum synchronized; Bidirectional: layer merge_mode weights backward_layer; CategoryEncoding: num_tokens
    output_mode sparse; CenterCrop: height width data_format; Concatenate: axis; ContrastLimitedAdaptiveHistogramEqualization:
    value_range clip_limit tile_grid_size data_format; Conv1D: filters kernel_size strides padding data_format dilation_rate groups
    activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; Conv1DTranspose: filters kernel_size strides padding output_padding data_format dilation_rate activation use_bias
    kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint;
    Conv2D: filters kernel_size strides padding data_format dilation_rate groups activation use_bias kernel_initializer bias_initializer
    kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv2DTranspose: filters kernel_size
    strides padding output_padding data_format dilation_rate activation use_bias kernel_initializer bias_initializer kernel_regularizer
    bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv3D: filters kernel_size strides padding data_format
    dilation_rate groups activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint; Conv3DTranspose: filters kernel_size strides padding data_format
    output_padding dilation_rate activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint; ConvLSTM1D: filters kernel_size strides padding data_format dilation_rate
    activation recurrent_activation use_bias kernel_initializer recurrent_initializer bias_initializer unit_forget_bias
    kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint
    bias_constraint dropout recurrent_dropout seed return_sequences return_state go_backwards stateful; ConvLSTM2D: filters kernel_size
    strides padding data_format dilation_rate activation recurrent_activation use_bias kernel_initializer recurrent_initializer
    bias_initializer unit_forget_bias kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint
    recurrent_constraint bias_constraint dropout recurrent_dropout seed return_sequences return_state go_backwards stateful; ConvLSTM3D:
    filters kernel_size strides padding data_format dilation_rate activation recurrent_activation use_bias kernel_initializer
    recurrent_initializer bias_initializer unit_forget_bias kernel_regularizer recurrent_regularizer bias_regularizer
    activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout recurrent_dropout seed return_sequences
    return_state go_backwards stateful; Convolution1D: filters kernel_size strides padding data_format dilation_rate groups activation
    use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; Convolution1DTranspose: filters kernel_size strides padding output_padding data_format dilation_rate activation
    use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; Convolution2D: filters kernel_size strides padding data_format dilation_rate groups activation use_bias
    kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint;
    Convolution2DTranspose: filters kernel_size strides padding output_padding data_format dilation_rate activation use_bias
    kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint;
    Convolution3D: filters kernel_size strides padding data_format dilation_rate groups activation use_bias kernel_initializer
    bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Convolution3DTranspose:
    filters kernel_size strides padding data_format output_padding dilation_rate activation use_bias kernel_initializer bias_initializer
    kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Cropping1D: cropping; Cropping2D:
    cropping data_format; Cropping3D: cropping data_format; CutMix: factor seed data_format; Dense: units activation use_bias
    kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint
    lora_rank lora_alpha quantization_config; DepthwiseConv1D: kernel_size strides padding depth_multiplier data_format dilation_rate
    activation use_bias depthwise_initializer bias_initializer depthwise_regularizer bias_regularizer activity_regularizer
    depthwise_constraint bias_constraint; DepthwiseConv2D: kernel_size strides padding depth_multiplier data_format dilation_rate
    activation use_bias depthwise_initializer bias_initializer depthwise_regularizer bias_regularizer activity_regularizer
    depthwise_constraint bias_constraint; Discretization: bin_boundaries num_bins epsilon output_mode sparse dtype name; Dot: axes
    normalize; Dropout: rate noise_shape seed; ELU: alpha; EinsumDense: equation output_shape activation bias_axes kernel_initializer
    bias_initializer kernel_regularizer bias_regularizer kernel_constraint bias_constraint lora_rank lora_alpha
    gptq_unpacked_column_size quantization_config; Embedding: input_dim output_dim embeddings_initializer embeddings_regularizer
    embeddings_constraint mask_zero weights lora_rank lora_alpha quantization_config; Equalization: value_range bins data_format;
    Flatten: data_format; FlaxLayer: module method variables; GRU: units activation recurrent_activation use_bias kernel_initializer
    recurrent_initializer bias_initializer kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer
    kernel_constraint recurrent_constraint bias_constraint dropout recurrent_dropout seed return_sequences return_state go_backwards
    stateful unroll reset_after use_cudnn; GRUCell: units activation recurrent_activation use_bias kernel_initializer
    recurrent_initializer bias_initializer kernel_regularizer recurrent_regularizer bias_regularizer kernel_constraint
    recurrent_constraint bias_constraint dropout recurrent_dropout reset_after seed; GaussianDropout: rate seed; GaussianNoise: stddev
    seed; GlobalAveragePooling1D: data_format keepdims; GlobalAveragePooling2D: data_format keepdims; GlobalAveragePooling3D:
    data_format keepdims; GlobalAvgPool1D: data_format keepdims; GlobalAvgPool2D: data_format keepdims; GlobalAvgPool3D: data_format
    keepdims; GlobalMaxPool1D: data_format keepdims; GlobalMaxPool2D: data_format keepdims; GlobalMaxPool3D: data_format keepdims;
    GlobalMaxPooling1D: data_format keepdims; GlobalMaxPooling2D: data_format keepdims; GlobalMaxPooling3D: data_format keepdims;
    GroupNormalization: groups axis epsilon center scale beta_initializer gamma_initializer beta_regularizer gamma_regularizer
    beta_constraint gamma_constraint; GroupQueryAttention: head_dim num_query_heads num_key_value_heads dropout use_bias sliding_window
    flash_attention kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint use_gate seed; HashedCrossing: num_bins output_mode sparse name dtype; Hashing: num_bins mask_value salt output_mode
    sparse; Input: shape batch_size dtype sparse ragged batch_shape name tensor optional; InputLayer: shape batch_size dtype sparse
    ragged batch_shape input_tensor optional name; InputSpec: dtype shape ndim max_ndim min_ndim axes allow_last_axis_squeeze name
    optional; IntegerLookup: max_tokens num_oov_indices mask_token oov_token vocabulary vocabulary_dtype idf_weights invert output_mode
    sparse pad_to_max_tokens oov_method salt name; JaxLayer: call_fn init_fn params state seed native_serialization_platforms; LSTM:
    units activation recurrent_activation use_bias kernel_initializer recurrent_initializer bias_initializer unit_forget_bias
    kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint
    bias_constraint dropout recurrent_dropout seed return_sequences return_state go_backwards stateful unroll use_cudnn; LSTMCell: units
    activation recurrent_activation use_bias kernel_initializer recurrent_initializer bias_initializer unit_forget_bias
    kernel_regularizer recurrent_regularizer bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout
    recurrent_dropout seed; Lambda: function output_shape mask arguments; Layer: activity_regularizer trainable dtype autocast name;
    LayerNormalization: axis epsilon center scale beta_initializer gamma_initializer beta_regularizer gamma_regularizer beta_constraint
    gamma_constraint; LeakyReLU: negative_slope; Masking: mask_value; MaxNumBoundingBoxes: max_number fill_value; MaxPool1D: pool_size
    strides padding data_format name; MaxPool2D: pool_size strides padding data_format name; MaxPool3D: pool_size strides padding
    data_format name; MaxPooling1D: pool_size strides padding data_format name; MaxPooling2D: pool_size strides padding data_format
    name; MaxPooling3D: pool_size strides padding data_format name; MelSpectrogram: fft_length sequence_stride sequence_length window
    sampling_rate num_mel_bins min_freq max_freq power_to_db top_db mag_exp min_power ref_power; MixUp: alpha data_format seed;
    MultiHeadAttention: num_heads key_dim value_dim dropout use_bias output_shape attention_axes sliding_window flash_attention
    kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint
    use_gate seed; Normalization: axis mean variance invert; PReLU: alpha_initializer alpha_regularizer alpha_constraint shared_axes;
    Permute: dims; Pipeline: layers name; RMSNormalization: axis epsilon; RNN: cell return_sequences return_state go_backwards stateful
    unroll zero_output_for_mask; RandAugment: value_range num_ops factor interpolation seed data_format; RandomBrightness: factor
    value_range seed; RandomColorDegeneration: factor value_range data_format seed; RandomColorJitter: value_range brightness_factor
    contrast_factor saturation_factor hue_factor seed data_format; RandomContrast: factor value_range seed; RandomCrop: height width
    seed data_format name; RandomElasticTransform: factor scale interpolation fill_mode fill_value value_range seed data_format;
    RandomErasing: factor scale fill_value value_range seed data_format; RandomFlip: mode seed data_format; RandomGaussianBlur: factor
    kernel_size sigma value_range data_format seed; RandomGrayscale: factor data_format seed; RandomHue: factor value_range data_format
    seed; RandomInvert: factor value_range seed data_format; RandomPerspective: factor scale interpolation fill_value seed data_format;
    RandomPosterization: factor value_range data_format seed; RandomRotation: factor fill_mode interpolation seed fill_value
    data_format; RandomSaturation: factor value_range data_format seed; RandomSharpness: factor value_range data_format seed;
    RandomShear: x_factor y_factor interpolation fill_mode fill_value data_format seed; RandomTranslation: height_factor width_factor
    fill_mode interpolation seed fill_value data_format; RandomZoom: height_factor width_factor fill_mode interpolation seed fill_value
    data_format; ReLU: max_value negative_slope threshold; RepeatVector: n; Rescaling: scale offset; Reshape: target_shape; Resizing:
    height width interpolation crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value antialias data_format; ReversibleEmbedding:
    input_dim output_dim tie_weights embeddings_initializer embeddings_regularizer embeddings_constraint mask_zero reverse_dtype
    logit_soft_cap; STFTSpectrogram: mode frame_length frame_step fft_length window periodic scaling padding expand_dims data_format;
    SeparableConv1D: filters kernel_size strides padding data_format dilation_rate depth_multiplier activation use_bias
    depthwise_initializer pointwise_initializer bias_initializer depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConv2D: filters kernel_size strides padding
    data_format dilation_rate depth_multiplier activation use_bias depthwise_initializer pointwise_initializer bias_initializer
    depthwise_regularizer pointwise_regularizer bias_regularizer activity_regularizer depthwise_constraint pointwise_constraint
    bias_constraint; SeparableConvolution1D: filters kernel_size strides padding data_format dilation_rate depth_multiplier activation
    use_bias depthwise_initializer pointwise_initializer bias_initializer depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConvolution2D: filters kernel_size strides
    padding data_format dilation_rate depth_multiplier activation use_bias depthwise_initializer pointwise_initializer bias_initializer
    depthwise_regularizer pointwise_regularizer bias_regularizer activity_regularizer depthwise_constraint pointwise_constraint
    bias_constraint; SimpleRNN: units activation use_bias kernel_initializer recurrent_initializer bias_initializer kernel_regularizer
    recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout
    recurrent_dropout return_sequences return_state go_backwards stateful unroll seed; SimpleRNNCell: units activation use_bias
    kernel_initializer recurrent_initializer bias_initializer kernel_regularizer recurrent_regularizer bias_regularizer
    kernel_constraint recurrent_constraint bias_constraint dropout recurrent_dropout seed; Softmax: axis; Solarization: addition_factor
    threshold_factor value_range seed; SpatialDropout1D: rate seed name dtype; SpatialDropout2D: rate data_format seed name dtype;
    SpatialDropout3D: rate data_format seed name dtype; SpectralNormalization: layer power_iterations; StackedRNNCells: cells;
    StringLookup: max_tokens num_oov_indices mask_token oov_token vocabulary idf_weights invert output_mode pad_to_max_tokens sparse
    encoding name salt; TFSMLayer: filepath call_endpoint call_training_endpoint trainable name dtype; TextVectorization: max_tokens
    standardize split ngrams output_mode output_sequence_length pad_to_max_tokens vocabulary idf_weights sparse ragged encoding name;
    TimeDistributed: layer; TorchModuleWrapper: module name output_shape; UnitNormalization: axis; UpSampling1D: size; UpSampling2D:
    size data_format interpolation; UpSampling3D: size data_format; Wrapper: layer; ZeroPadding1D: padding data_format; ZeroPadding2D:
    padding data_format; ZeroPadding3D: padding data_format; add: inputs; average: inputs; concatenate: inputs axis; deserialize: config
    custom_objects; dot: inputs axes; maximum: inputs; minimum: inputs; multiply: inputs; serialize: layer; subtract: inputs;
  ]],
  ["losses"] = [[
    BinaryCrossentropy: from_logits label_smoothing axis reduction name dtype; BinaryFocalCrossentropy: apply_class_balancing alpha
    gamma from_logits label_smoothing axis reduction name dtype; CTC: reduction name dtype; CategoricalCrossentropy: from_logits
    label_smoothing axis reduction name dtype; CategoricalFocalCrossentropy: alpha gamma from_logits label_smoothing axis reduction name
    dtype; CategoricalGeneralizedCrossEntropy: q reduction name dtype; CategoricalHinge: reduction name dtype; Circle: gamma margin
    remove_diagonal reduction name dtype; CosineSimilarity: axis reduction name dtype; Dice: reduction name axis dtype; Hinge: reduction
    name dtype; Huber: delta reduction name dtype; KLDivergence: reduction name dtype; LogCosh: reduction name dtype; Loss: name
    reduction dtype; MeanAbsoluteError: reduction name dtype; MeanAbsolutePercentageError: reduction name dtype; MeanSquaredError:
    reduction name dtype; MeanSquaredLogarithmicError: reduction name dtype; Poisson: reduction name dtype;
    SparseCategoricalCrossentropy: from_logits ignore_class reduction axis name dtype; SquaredHinge: reduction name dtype; Tversky:
    alpha beta reduction name axis dtype; binary_crossentropy: y_true y_pred from_logits label_smoothing axis;
    binary_focal_crossentropy: y_true y_pred apply_class_balancing alpha gamma from_logits label_smoothing axis;
    categorical_crossentropy: y_true y_pred from_logits label_smoothing axis; categorical_focal_crossentropy: y_true y_pred alpha gamma
    from_logits label_smoothing axis; categorical_generalized_cross_entropy: y_true y_pred q; categorical_hinge: y_true y_pred; circle:
    y_true y_pred ref_labels ref_embeddings remove_diagonal gamma margin; cosine_similarity: y_true y_pred axis; ctc: y_true y_pred;
    deserialize: name custom_objects; dice: y_true y_pred axis; get: identifier; hinge: y_true y_pred; huber: y_true y_pred delta;
    kl_divergence: y_true y_pred; log_cosh: y_true y_pred; mean_absolute_error: y_true y_pred; mean_absolute_percentage_error: y_true
    y_pred; mean_squared_error: y_true y_pred; mean_squared_logarithmic_error: y_true y_pred; poisson: y_true y_pred; serialize: loss;
    sparse_categorical_crossentropy: y_true y_pred from_logits ignore_class axis; squared_hinge: y_true y_pred; tversky: y_true y_pred
    alpha beta axis;
  ]],
  ["metrics"] = [[
    AUC: num_thresholds curve summation_method name dtype thresholds multi_label num_labels label_weights from_logits; Accuracy: name
    dtype; BinaryAccuracy: name dtype threshold; BinaryCrossentropy: name dtype from_logits label_smoothing; BinaryIoU: target_class_ids
    threshold name dtype; CategoricalAccuracy: name dtype; CategoricalCrossentropy: name dtype from_logits label_smoothing axis;
    CategoricalHinge: name dtype; ConcordanceCorrelation: name dtype axis; CosineSimilarity: name dtype axis; F1Score: average threshold
    name dtype; FBetaScore: average beta threshold name dtype; FalseNegatives: thresholds name dtype; FalsePositives: thresholds name
    dtype; Hinge: name dtype; IoU: num_classes target_class_ids name dtype ignore_class sparse_y_true sparse_y_pred axis; KLDivergence:
    name dtype; LogCoshError: name dtype; Mean: name dtype; MeanAbsoluteError: name dtype; MeanAbsolutePercentageError: name dtype;
    MeanIoU: num_classes name dtype ignore_class sparse_y_true sparse_y_pred axis; MeanMetricWrapper: fn name dtype; MeanSquaredError:
    name dtype; MeanSquaredLogarithmicError: name dtype; Metric: dtype name; OneHotIoU: num_classes target_class_ids name dtype
    ignore_class sparse_y_pred axis; OneHotMeanIoU: num_classes name dtype ignore_class sparse_y_pred axis; PearsonCorrelation: name
    dtype axis; Poisson: name dtype; Precision: thresholds top_k class_id name dtype; PrecisionAtRecall: recall num_thresholds class_id
    name dtype; R2Score: class_aggregation num_regressors name dtype; Recall: thresholds top_k class_id name dtype; RecallAtPrecision:
    precision num_thresholds class_id name dtype; RootMeanSquaredError: name dtype; SensitivityAtSpecificity: specificity num_thresholds
    class_id name dtype; SparseCategoricalAccuracy: name dtype; SparseCategoricalCrossentropy: name dtype from_logits ignore_class axis;
    SparseTopKCategoricalAccuracy: k name dtype from_sorted_ids; SpecificityAtSensitivity: sensitivity num_thresholds class_id name
    dtype; SquaredHinge: name dtype; Sum: name dtype; TopKCategoricalAccuracy: k name dtype; TrueNegatives: thresholds name dtype;
    TruePositives: thresholds name dtype; binary_accuracy: y_true y_pred threshold; binary_crossentropy: y_true y_pred from_logits
    label_smoothing axis; binary_focal_crossentropy: y_true y_pred apply_class_balancing alpha gamma from_logits label_smoothing axis;
    categorical_accuracy: y_true y_pred; categorical_crossentropy: y_true y_pred from_logits label_smoothing axis;
    categorical_focal_crossentropy: y_true y_pred alpha gamma from_logits label_smoothing axis; categorical_hinge: y_true y_pred;
    concordance_correlation: y_true y_pred axis; deserialize: config custom_objects; get: identifier; hinge: y_true y_pred; huber:
    y_true y_pred delta; kl_divergence: y_true y_pred; log_cosh: y_true y_pred; mean_absolute_error: y_true y_pred;
    mean_absolute_percentage_error: y_true y_pred; mean_squared_error: y_true y_pred; mean_squared_logarithmic_error: y_true y_pred;
    pearson_correlation: y_true y_pred axis; poisson: y_true y_pred; serialize: metric; sparse_categorical_accuracy: y_true y_pred;
    sparse_categorical_crossentropy: y_true y_pred from_logits ignore_class axis; sparse_top_k_categorical_accuracy: y_true y_pred k
    from_sorted_ids; squared_hinge: y_true y_pred; top_k_categorical_accuracy: y_true y_pred k;
  ]],
  ["callbacks"] = [[
    BackupAndRestore: backup_dir save_freq double_checkpoint delete_checkpoint; CSVLogger: filename separator append; CallbackList:
    callbacks add_history add_progbar model; EarlyStopping: monitor min_delta patience verbose mode baseline restore_best_weights
    start_from_epoch; LambdaCallback: on_epoch_begin on_epoch_end on_train_begin on_train_end on_train_batch_begin on_train_batch_end;
    LearningRateScheduler: schedule verbose; ModelCheckpoint: filepath monitor verbose save_best_only save_weights_only mode save_freq
    initial_value_threshold; OrbaxCheckpoint: directory monitor verbose save_best_only mode save_freq initial_value_threshold
    max_to_keep save_on_background save_weights_only; ReduceLROnPlateau: monitor factor patience verbose mode min_delta cooldown min_lr;
    RemoteMonitor: root path field headers send_as_json; SwapEMAWeights: swap_on_epoch; TensorBoard: log_dir histogram_freq write_graph
    write_images write_steps_per_second update_freq profile_batch embeddings_freq embeddings_metadata; TerminateOnNaN: raise_error;
  ]],
  ["optimizers"] = [[
    Adadelta: learning_rate rho epsilon weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; Adafactor: learning_rate beta_2_decay epsilon_1 epsilon_2 clip_threshold
    relative_step weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; Adagrad: learning_rate initial_accumulator_value epsilon weight_decay clipnorm clipvalue
    global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adam: learning_rate
    beta_1 beta_2 epsilon amsgrad weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; AdamW: learning_rate weight_decay beta_1 beta_2 epsilon amsgrad clipnorm
    clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adamax:
    learning_rate beta_1 beta_2 epsilon weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; Ftrl: learning_rate learning_rate_power initial_accumulator_value
    l1_regularization_strength l2_regularization_strength l2_shrinkage_regularization_strength beta weight_decay clipnorm clipvalue
    global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Lamb: learning_rate
    beta_1 beta_2 epsilon weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; Lion: learning_rate beta_1 beta_2 weight_decay clipnorm clipvalue global_clipnorm use_ema
    ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; LossScaleOptimizer: inner_optimizer
    initial_scale dynamic_growth_steps name; MultiOptimizer: optimizer_map loss_scale_factor name; Muon: learning_rate adam_beta_1
    adam_beta_2 adam_weight_decay epsilon weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name exclude_layers exclude_embeddings muon_a muon_b muon_c adam_lr_ratio momentum
    ns_steps nesterov rms_rate; Nadam: learning_rate beta_1 beta_2 epsilon weight_decay clipnorm clipvalue global_clipnorm use_ema
    ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; OptimizerMap: default_optimizer
    optimizer_map; RMSprop: learning_rate rho momentum epsilon centered weight_decay clipnorm clipvalue global_clipnorm use_ema
    ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; SGD: learning_rate momentum nesterov
    weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; ScheduleFreeAdamW: learning_rate beta_1 beta_2 epsilon warmup_steps weight_decay clipnorm
    clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    deserialize: config custom_objects; get: identifier; serialize: optimizer;
  ]],
  ["optimizers.schedules"] = [[
    CosineDecay: initial_learning_rate decay_steps alpha name warmup_target warmup_steps; CosineDecayRestarts: initial_learning_rate
    first_decay_steps t_mul m_mul alpha name; ExponentialDecay: initial_learning_rate decay_steps decay_rate staircase name;
    InverseTimeDecay: initial_learning_rate decay_steps decay_rate staircase name; PiecewiseConstantDecay: boundaries values name;
    PolynomialDecay: initial_learning_rate decay_steps end_learning_rate power cycle name; deserialize: config custom_objects;
    serialize: learning_rate_schedule;
  ]],
  ["initializers"] = [[
    Constant: value; GlorotNormal: seed input_axes output_axes; GlorotUniform: seed input_axes output_axes; HeNormal: seed input_axes
    output_axes; HeUniform: seed input_axes output_axes; Identity: gain; IdentityInitializer: gain; LecunNormal: seed input_axes
    output_axes; LecunUniform: seed input_axes output_axes; Orthogonal: gain seed; OrthogonalInitializer: gain seed; RandomNormal: mean
    stddev seed; RandomUniform: minval maxval seed; STFT: side window scaling periodic; STFTInitializer: side window scaling periodic;
    TruncatedNormal: mean stddev seed; VarianceScaling: scale mode distribution seed input_axes output_axes; constant: value;
    deserialize: config custom_objects; get: identifier; glorot_normal: seed input_axes output_axes; glorot_uniform: seed input_axes
    output_axes; he_normal: seed input_axes output_axes; he_uniform: seed input_axes output_axes; identity: gain; lecun_normal: seed
    input_axes output_axes; lecun_uniform: seed input_axes output_axes; orthogonal: gain seed; random_normal: mean stddev seed;
    random_uniform: minval maxval seed; serialize: initializer; stft: side window scaling periodic; truncated_normal: mean stddev seed;
    variance_scaling: scale mode distribution seed input_axes output_axes;
  ]],
  ["regularizers"] = [[
    L1: l1; L1L2: l1 l2; L2: l2; OrthogonalRegularizer: factor mode; deserialize: config custom_objects; get: identifier; l1: l1; l1_l2:
    l1 l2; l2: l2; orthogonal_regularizer: factor mode; serialize: regularizer;
  ]],
  ["constraints"] = [[
    MaxNorm: max_value axis; MinMaxNorm: min_value max_value rate axis; UnitNorm: axis; deserialize: config custom_objects; get:
    identifier; max_norm: max_value axis; min_max_norm: min_value max_value rate axis; serialize: constraint; unit_norm: axis;
  ]],
}
