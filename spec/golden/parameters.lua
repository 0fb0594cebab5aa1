-- parameters.lua: the parameters of Keras 3.15.1's functions. Made by parameters.py.
return {
  ["ops"] = [[
    abs: x; absolute: x; adaptive_average_pool: inputs output_size data_format; adaptive_max_pool: inputs output_size data_format; add:
    x1 x2; all: x axis keepdims=false; allclose: x1 x2 rtol=1e-05 atol=1e-08 equal_nan=false; amax: x axis keepdims=false; amin: x axis
    keepdims=false; angle: x; any: x axis keepdims=false; append: x1 x2 axis; arange: start stop step dtype; arccos: x; arccosh: x;
    arcsin: x; arcsinh: x; arctan: x; arctan2: x1 x2; arctanh: x; argmax: x axis keepdims=false; argmin: x axis keepdims=false;
    argpartition: x kth axis=-1; argsort: x axis=-1; array: x dtype; array_split: x indices_or_sections axis=0; associative_scan: f
    elems reverse=false axis=0; average: x axis weights; average_pool: inputs pool_size strides padding=valid data_format; bartlett: x;
    batch_normalization: x mean variance axis offset scale epsilon=0.001; binary_crossentropy: target output from_logits=false;
    bincount: x weights minlength=0 sparse=false; bitwise_and: x y; bitwise_invert: x; bitwise_left_shift: x y; bitwise_not: x;
    bitwise_or: x y; bitwise_right_shift: x y; bitwise_xor: x y; blackman: x; broadcast_to: x shape; cast: x dtype;
    categorical_crossentropy: target output from_logits=false axis=-1; cbrt: x; cdist: x y; ceil: x; celu: x alpha=1.0; cholesky: x
    upper=false; cholesky_inverse: x upper=false; clip: x x_min x_max; concatenate: xs axis=0; cond: pred true_fn false_fn; conj: x;
    conjugate: x; conv: inputs kernel strides=1 padding=valid data_format dilation_rate=1; conv_transpose: inputs kernel strides=1
    padding=valid output_padding data_format dilation_rate=1; convert_to_numpy: x; convert_to_tensor: x dtype sparse ragged; copy: x;
    corrcoef: x; correlate: x1 x2 mode=valid; cos: x; cosh: x; count_nonzero: x axis; cross: x1 x2 axisa=-1 axisb=-1 axisc=-1 axis;
    ctc_decode: inputs sequence_lengths strategy=greedy beam_width=100 top_paths=1 merge_repeated=true mask_index=0; ctc_loss: target
    output target_length output_length mask_index=0; cumprod: x axis dtype; cumsum: x axis dtype; custom_gradient: f; deg2rad: x;
    depth_to_space: x block_size data_format=channels_last; depthwise_conv: inputs kernel strides=1 padding=valid data_format
    dilation_rate=1; det: x; diag: x k=0; diagflat: x k=0; diagonal: x offset=0 axis1=0 axis2=1; diff: a n=1 axis=-1; digitize: x bins;
    divide: x1 x2; divide_no_nan: x1 x2; dot: x1 x2; dot_product_attention: query key value bias mask scale is_causal=false
    flash_attention attn_logits_soft_cap; dsplit: x indices_or_sections; dstack: xs; dtype: x; eig: x; eigh: x; einsum: subscripts; elu:
    x alpha=1.0; empty: shape dtype; empty_like: x dtype; equal: x1 x2; erf: x; erfc: x; erfinv: x; exp: x; exp2: x; expand_dims: x
    axis; expm1: x; extract_sequences: x sequence_length sequence_stride; eye: N M k=0 dtype; fabs: x; fft: x; fft2: x; flip: x axis;
    fliplr: x; flipud: x; floor: x; floor_divide: x1 x2; fmax: x1 x2; fmin: x1 x2; fmod: x1 x2; fold: x output_size kernel_size
    dilation=1 padding=0 stride=1; fori_loop: lower upper body_fun init_val; full: shape fill_value dtype; full_like: x fill_value
    dtype; gcd: x1 x2; gelu: x approximate=true; geomspace: start stop num=50 endpoint=true dtype axis=0; get_item: x key; glu: x
    axis=-1; greater: x1 x2; greater_equal: x1 x2; hamming: x; hanning: x; hard_shrink: x threshold=0.5; hard_sigmoid: x; hard_silu: x;
    hard_swish: x; hard_tanh: x; heaviside: x1 x2; histogram: x bins=10 range; hsplit: x indices_or_sections; hstack: xs; hypot: x1 x2;
    i0: x; identity: n dtype; ifft2: x; imag: x; in_top_k: targets predictions k; inner: x1 x2; inv: x; irfft: x fft_length; is_tensor:
    x; isclose: x1 x2 rtol=1e-05 atol=1e-08 equal_nan=false; isfinite: x; isin: x1 x2 assume_unique=false invert=false; isinf: x; isnan:
    x; isneginf: x; isposinf: x; isreal: x; istft: x sequence_length sequence_stride fft_length length window=hann center=true; jvp: fun
    primals tangents has_aux=false; kaiser: x beta; kron: x1 x2; layer_normalization: x gamma beta axis=-1 epsilon; lcm: x1 x2; ldexp:
    x1 x2; leaky_relu: x negative_slope=0.2; left_shift: x y; less: x1 x2; less_equal: x1 x2; linspace: start stop num=50 endpoint=true
    retstep=false dtype axis=0; log: x; log10: x; log1p: x; log2: x; log_sigmoid: x; log_softmax: x axis=-1; logaddexp: x1 x2;
    logaddexp2: x1 x2; logdet: x; logical_and: x1 x2; logical_not: x; logical_or: x1 x2; logical_xor: x1 x2; logspace: start stop num=50
    endpoint=true base=10 dtype axis=0; logsumexp: x axis keepdims=false; lstsq: a b rcond; lu_factor: x; map: f xs; matmul: x1 x2;
    matrix_rank: x tol; max: x axis keepdims=false initial; max_pool: inputs pool_size strides padding=valid data_format; maximum: x1
    x2; mean: x axis keepdims=false; median: x axis keepdims=false; meshgrid: indexing=xy; min: x axis keepdims=false initial; minimum:
    x1 x2; mod: x1 x2; moments: x axes keepdims=false synchronized=false; moveaxis: x source destination; multi_hot: inputs num_classes
    axis=-1 dtype sparse=false; multiply: x1 x2; nan_to_num: x nan=0.0 posinf neginf; nanargmax: x axis keepdims=false; nanargmin: x
    axis keepdims=false; nancumprod: x axis dtype; nancumsum: x axis dtype; nanmax: x axis keepdims=false; nanmean: x axis
    keepdims=false; nanmedian: x axis keepdims=false; nanmin: x axis keepdims=false; nanpercentile: x q axis method=linear
    keepdims=false; nanprod: x axis keepdims=false; nanquantile: x q axis method=linear keepdims=false; nanstd: x axis keepdims=false;
    nansum: x axis keepdims=false; nanvar: x axis keepdims=false; ndim: x; negative: x; nextafter: x1 x2; nonzero: x; norm: x ord axis
    keepdims=false; normalize: x axis=-1 order=2 epsilon; not_equal: x1 x2; one_hot: x num_classes axis=-1 dtype sparse=false; ones:
    shape dtype; ones_like: x dtype; outer: x1 x2; pad: x pad_width mode=constant constant_values; percentile: x q axis method=linear
    keepdims=false; pinv: x rcond; polar: abs_ angle; power: x1 x2; prod: x axis keepdims=false dtype; psnr: x1 x2 max_val; ptp: x axis
    keepdims=false; qr: x mode=reduced; quantile: x q axis method=linear keepdims=false; rad2deg: x; ravel: x; real: x; rearrange:
    tensor pattern; reciprocal: x; relu: x; relu6: x; repeat: x repeats axis; reshape: x newshape; rfft: x fft_length; right_shift: x y;
    rms_normalization: x scale axis=-1 epsilon; roll: x shift axis; rot90: array k=1 axes; round: x decimals=0; rsqrt: x; saturate_cast:
    x dtype; scan: f init xs length reverse=false unroll=1; scatter: indices values shape; scatter_update: inputs indices updates
    reduction; searchsorted: sorted_sequence values side=left; segment_max: data segment_ids num_segments sorted=false; segment_min:
    data segment_ids num_segments sorted=false; segment_prod: data segment_ids num_segments sorted=false; segment_sum: data segment_ids
    num_segments sorted=false; select: condlist choicelist default=0; selu: x; separable_conv: inputs depthwise_kernel pointwise_kernel
    strides=1 padding=valid data_format dilation_rate=1; shape: x; sigmoid: x; sign: x; signbit: x; silu: x; sin: x; sinc: x; sinh: x;
    size: x; slice: inputs start_indices shape; slice_update: inputs start_indices updates; slogdet: x; soft_shrink: x threshold=0.5;
    softmax: x axis=-1; softplus: x; softsign: x; solve: a b; solve_triangular: a b lower=false; sort: x axis=-1; space_to_depth: x
    block_size data_format=channels_last; sparse_categorical_crossentropy: target output from_logits=false axis=-1; sparse_plus: x;
    sparse_sigmoid: x; sparsemax: x axis=-1; split: x indices_or_sections axis=0; sqrt: x; square: x; squareplus: x b=4; squeeze: x
    axis; stack: x axis=0; std: x axis keepdims=false; stft: x sequence_length sequence_stride fft_length window=hann center=true;
    stop_gradient: variable; subtract: x1 x2; sum: x axis keepdims=false; svd: x full_matrices=true compute_uv=true; swapaxes: x axis1
    axis2; swish: x; switch: index branches; take: x indices axis; take_along_axis: x indices axis; tan: x; tanh: x; tanh_shrink: x;
    tensordot: x1 x2 axes=2; threshold: x threshold default_value; tile: x repeats; top_k: x k sorted=true; trace: x offset=0 axis1=0
    axis2=1; transpose: x axes; trapezoid: y x dx=1.0 axis=-1; tri: N M k=0 dtype; tril: x k=0; triu: x k=0; true_divide: x1 x2; trunc:
    x; unfold: x kernel_size dilation=1 padding=0 stride=1; unique: x sorted=true return_index=false return_inverse=false
    return_counts=false axis size fill_value; unravel_index: indices shape; unstack: x num axis=0; vander: x N increasing=false; var: x
    axis keepdims=false; vdot: x1 x2; vectorize: pyfunc excluded signature; vectorized_map: function elements; view: x dtype;
    view_as_complex: x; view_as_real: x; vsplit: x indices_or_sections; vstack: xs; where: condition x1 x2; while_loop: cond body
    loop_vars maximum_iterations; zeros: shape dtype; zeros_like: x dtype;
  ]],
  ["ops.image"] = [[
    affine_transform: images transform interpolation=bilinear fill_mode=constant fill_value=0 data_format; crop_images: images
    top_cropping left_cropping bottom_cropping right_cropping target_height target_width data_format; elastic_transform: images
    alpha=20.0 sigma=5.0 interpolation=bilinear fill_mode=reflect fill_value=0.0 seed data_format; extract_patches: images size strides
    dilation_rate=1 padding=valid data_format; extract_patches_3d: volumes size strides dilation_rate=1 padding=valid data_format;
    gaussian_blur: images kernel_size sigma data_format; hsv_to_rgb: images data_format; map_coordinates: inputs coordinates order
    fill_mode=constant fill_value=0; pad_images: images top_padding left_padding bottom_padding right_padding target_height target_width
    data_format; perspective_transform: images start_points end_points interpolation=bilinear fill_value=0 data_format; resize: images
    size interpolation=bilinear antialias=false crop_to_aspect_ratio=false pad_to_aspect_ratio=false fill_mode=constant fill_value=0.0
    data_format; rgb_to_grayscale: images data_format; rgb_to_hsv: images data_format; scale_and_translate: images output_shape scale
    translation spatial_dims method antialias=true; sobel_edges: images data_format; ssim: image1 image2 max_val=1.0 filter_size=11
    filter_sigma=1.5 k1=0.01 k2=0.03 data_format;
  ]],
  ["ops.linalg"] = [[
    cholesky: x upper=false; cholesky_inverse: x upper=false; det: x; eig: x; eigh: x; inv: x; jvp: fun primals tangents has_aux=false;
    lstsq: a b rcond; lu_factor: x; matrix_rank: x tol; norm: x ord axis keepdims=false; pinv: x rcond; qr: x mode=reduced; solve: a b;
    solve_triangular: a b lower=false; svd: x full_matrices=true compute_uv=true;
  ]],
  ["ops.nn"] = [[
    adaptive_average_pool: inputs output_size data_format; adaptive_max_pool: inputs output_size data_format; average_pool: inputs
    pool_size strides padding=valid data_format; batch_normalization: x mean variance axis offset scale epsilon=0.001;
    binary_crossentropy: target output from_logits=false; categorical_crossentropy: target output from_logits=false axis=-1; celu: x
    alpha=1.0; conv: inputs kernel strides=1 padding=valid data_format dilation_rate=1; conv_transpose: inputs kernel strides=1
    padding=valid output_padding data_format dilation_rate=1; ctc_decode: inputs sequence_lengths strategy=greedy beam_width=100
    top_paths=1 merge_repeated=true mask_index=0; ctc_loss: target output target_length output_length mask_index=0; depth_to_space: x
    block_size data_format=channels_last; depthwise_conv: inputs kernel strides=1 padding=valid data_format dilation_rate=1;
    dot_product_attention: query key value bias mask scale is_causal=false flash_attention attn_logits_soft_cap; elu: x alpha=1.0; fold:
    x output_size kernel_size dilation=1 padding=0 stride=1; gelu: x approximate=true; glu: x axis=-1; hard_shrink: x threshold=0.5;
    hard_sigmoid: x; hard_silu: x; hard_swish: x; hard_tanh: x; layer_normalization: x gamma beta axis=-1 epsilon; leaky_relu: x
    negative_slope=0.2; log_sigmoid: x; log_softmax: x axis=-1; max_pool: inputs pool_size strides padding=valid data_format; moments: x
    axes keepdims=false synchronized=false; multi_hot: inputs num_classes axis=-1 dtype sparse=false; normalize: x axis=-1 order=2
    epsilon; one_hot: x num_classes axis=-1 dtype sparse=false; polar: abs_ angle; psnr: x1 x2 max_val; relu: x; relu6: x;
    rms_normalization: x scale axis=-1 epsilon; selu: x; separable_conv: inputs depthwise_kernel pointwise_kernel strides=1
    padding=valid data_format dilation_rate=1; sigmoid: x; silu: x; soft_shrink: x threshold=0.5; softmax: x axis=-1; softplus: x;
    softsign: x; space_to_depth: x block_size data_format=channels_last; sparse_categorical_crossentropy: target output
    from_logits=false axis=-1; sparse_plus: x; sparse_sigmoid: x; sparsemax: x axis=-1; squareplus: x b=4; swish: x; tanh_shrink: x;
    threshold: x threshold default_value; unfold: x kernel_size dilation=1 padding=0 stride=1;
  ]],
  ["random"] = [[
    SeedGenerator: seed name; beta: shape alpha beta dtype seed; binomial: shape counts probabilities dtype seed; categorical: logits
    num_samples dtype=int32 seed; dropout: inputs rate noise_shape seed; gamma: shape alpha dtype seed; normal: shape mean=0.0
    stddev=1.0 dtype seed; randint: shape minval maxval dtype=int32 seed; shuffle: x axis=0 seed; truncated_normal: shape mean=0.0
    stddev=1.0 dtype seed; uniform: shape minval=0.0 maxval=1.0 dtype seed;
  ]],
  ["utils"] = [[
    CustomObjectScope: custom_objects; FeatureSpace: features output_mode=concat crosses crossing_dim=32 hashing_dim=32
    num_discretization_bins=32 name; Progbar: target width=20 verbose=1 interval=0.05 stateful_metrics stateless_metrics unit_name=step;
    PyDataset: workers=1 use_multiprocessing=false max_queue_size=10; Sequence: workers=1 use_multiprocessing=false max_queue_size=10;
    array_to_img: x data_format scale=true dtype; audio_dataset_from_directory: directory labels=inferred label_mode=int class_names
    batch_size=32 sampling_rate output_sequence_length ragged=false shuffle=true seed validation_split subset follow_links=false
    verbose=true; clear_session: free_memory=true; custom_object_scope: custom_objects; deserialize_keras_object: config custom_objects
    safe_mode=true; get_file: fname origin untar=false md5_hash file_hash cache_subdir=datasets hash_algorithm=auto extract=false
    archive_format=auto cache_dir force_download=false; get_registered_name: obj; get_registered_object: name custom_objects
    module_objects; get_source_inputs: tensor; image_dataset_from_directory: directory labels=inferred label_mode=int class_names
    color_mode=rgb batch_size=32 image_size shuffle=true seed validation_split subset interpolation=bilinear follow_links=false
    crop_to_aspect_ratio=false pad_to_aspect_ratio=false data_format format=tf verbose=true; img_to_array: img data_format dtype;
    is_keras_tensor: x; load_img: path color_mode=rgb target_size interpolation=nearest keep_aspect_ratio=false; model_to_dot: model
    show_shapes=false show_dtype=false show_layer_names=true rankdir=TB expand_nested=false dpi=200 subgraph=false
    show_layer_activations=false show_trainable=false splines=ortho; normalize: x axis=-1 order=2; pack_x_y_sample_weight: x y
    sample_weight; pad_sequences: sequences maxlen dtype=int32 padding=pre truncating=pre value=0.0; plot_model: model to_file=model.png
    show_shapes=false show_dtype=false show_layer_names=false rankdir=TB expand_nested=false dpi=200 show_layer_activations=false
    show_trainable=false splines=ortho; register_keras_serializable: package=Custom name; save_img: path x data_format file_format
    scale=true; serialize_keras_object: obj; set_random_seed: seed; split_dataset: dataset left_size right_size shuffle=false seed
    preferred_backend; standardize_dtype: dtype; text_dataset_from_directory: directory labels=inferred label_mode=int class_names
    batch_size=32 max_length shuffle=true seed validation_split subset follow_links=false format=tf verbose=true;
    timeseries_dataset_from_array: data targets sequence_length sequence_stride=1 sampling_rate=1 batch_size=128 shuffle=false seed
    start_index end_index format=tf; to_categorical: x num_classes; unpack_x_y_sample_weight: data;
  ]],
  ["layers"] = [[
    Activation: activation; ActivityRegularization: l1=0.0 l2=0.0; AdaptiveAveragePooling1D: output_size data_format;
    AdaptiveAveragePooling2D: output_size data_format; AdaptiveAveragePooling3D: output_size data_format; AdaptiveMaxPooling1D:
    output_size data_format; AdaptiveMaxPooling2D: output_size data_format; AdaptiveMaxPooling3D: output_size data_format;
    AdditiveAttention: use_scale=true dropout=0.0; AlphaDropout: rate noise_shape seed; Attention: use_scale=false score_mode=dot
    dropout=0.0 seed; AugMix: value_range num_chains=3 chain_depth=3 factor=0.3 alpha=1.0 all_ops=true interpolation=bilinear seed
    data_format; AutoContrast: value_range; AveragePooling1D: pool_size strides padding=valid data_format name; AveragePooling2D:
    pool_size strides padding=valid data_format name; AveragePooling3D: pool_size strides padding=valid data_format name; AvgPool1D:
    pool_size strides padding=valid data_format name; AvgPool2D: pool_size strides padding=valid data_format name; AvgPool3D: pool_size
    strides padding=valid data_format name; BatchNormalization: axis=-1 momentum=0.99 epsilon=0.001 center=true scale=true
    beta_initializer=zeros gamma_initializer=ones moving_mean_initializer=zeros moving_variance_initializer=ones beta_regularizer
    gamma_regularizer beta_constraint gamma_constraint renorm=false renorm_clipping renorm_momentum=0.99 synchronized=false;
    Bidirectional: layer merge_mode=concat weights backward_layer; CategoryEncoding: num_tokens output_mode=multi_hot sparse=false;
    CenterCrop: height width data_format; Concatenate: axis=-1; ContrastLimitedAdaptiveHistogramEqualization: value_range clip_limit=4.0
    tile_grid_size data_format; Conv1D: filters kernel_size strides=1 padding=valid data_format dilation_rate=1 groups=1 activation
    use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer
    kernel_constraint bias_constraint; Conv1DTranspose: filters kernel_size strides=1 padding=valid output_padding data_format
    dilation_rate=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer
    bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv2D: filters kernel_size strides padding=valid
    data_format dilation_rate groups=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros
    kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv2DTranspose: filters kernel_size
    strides padding=valid output_padding data_format dilation_rate activation use_bias=true kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv3D: filters
    kernel_size strides padding=valid data_format dilation_rate groups=1 activation use_bias=true kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv3DTranspose:
    filters kernel_size strides padding=valid data_format output_padding dilation_rate activation use_bias=true
    kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; ConvLSTM1D: filters kernel_size strides=1 padding=valid data_format dilation_rate=1 activation=tanh
    recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros
    unit_forget_bias=true kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint
    recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false return_state=false
    go_backwards=false stateful=false; ConvLSTM2D: filters kernel_size strides=1 padding=valid data_format dilation_rate=1
    activation=tanh recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal
    bias_initializer=zeros unit_forget_bias=true kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer
    kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false
    return_state=false go_backwards=false stateful=false; ConvLSTM3D: filters kernel_size strides=1 padding=valid data_format
    dilation_rate=1 activation=tanh recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform
    recurrent_initializer=orthogonal bias_initializer=zeros unit_forget_bias=true kernel_regularizer recurrent_regularizer
    bias_regularizer activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 seed
    return_sequences=false return_state=false go_backwards=false stateful=false; Convolution1D: filters kernel_size strides=1
    padding=valid data_format dilation_rate=1 groups=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros
    kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Convolution1DTranspose: filters
    kernel_size strides=1 padding=valid output_padding data_format dilation_rate=1 activation use_bias=true
    kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; Convolution2D: filters kernel_size strides padding=valid data_format dilation_rate groups=1 activation
    use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer
    kernel_constraint bias_constraint; Convolution2DTranspose: filters kernel_size strides padding=valid output_padding data_format
    dilation_rate activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint; Convolution3D: filters kernel_size strides padding=valid data_format
    dilation_rate groups=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer
    bias_regularizer activity_regularizer kernel_constraint bias_constraint; Convolution3DTranspose: filters kernel_size strides
    padding=valid data_format output_padding dilation_rate activation use_bias=true kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Cropping1D:
    cropping; Cropping2D: cropping data_format; Cropping3D: cropping data_format; CutMix: factor=1.0 seed data_format; Dense: units
    activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint lora_rank lora_alpha quantization_config; DepthwiseConv1D: kernel_size
    strides=1 padding=valid depth_multiplier=1 data_format dilation_rate=1 activation use_bias=true depthwise_initializer=glorot_uniform
    bias_initializer=zeros depthwise_regularizer bias_regularizer activity_regularizer depthwise_constraint bias_constraint;
    DepthwiseConv2D: kernel_size strides padding=valid depth_multiplier=1 data_format dilation_rate activation use_bias=true
    depthwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer bias_regularizer activity_regularizer
    depthwise_constraint bias_constraint; Discretization: bin_boundaries num_bins epsilon=0.01 output_mode=int sparse=false dtype name;
    Dot: axes normalize=false; Dropout: rate noise_shape seed; ELU: alpha=1.0; EinsumDense: equation output_shape activation bias_axes
    kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer kernel_constraint bias_constraint
    lora_rank lora_alpha gptq_unpacked_column_size quantization_config; Embedding: input_dim output_dim embeddings_initializer=uniform
    embeddings_regularizer embeddings_constraint mask_zero=false weights lora_rank lora_alpha quantization_config; Equalization:
    value_range bins=256 data_format; Flatten: data_format; FlaxLayer: module method variables; GRU: units activation=tanh
    recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros
    kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint
    bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false return_state=false go_backwards=false stateful=false
    unroll=false reset_after=true use_cudnn=auto; GRUCell: units activation=tanh recurrent_activation=sigmoid use_bias=true
    kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros kernel_regularizer recurrent_regularizer
    bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 reset_after=true seed;
    GaussianDropout: rate seed; GaussianNoise: stddev seed; GlobalAveragePooling1D: data_format keepdims=false; GlobalAveragePooling2D:
    data_format keepdims=false; GlobalAveragePooling3D: data_format keepdims=false; GlobalAvgPool1D: data_format keepdims=false;
    GlobalAvgPool2D: data_format keepdims=false; GlobalAvgPool3D: data_format keepdims=false; GlobalMaxPool1D: data_format
    keepdims=false; GlobalMaxPool2D: data_format keepdims=false; GlobalMaxPool3D: data_format keepdims=false; GlobalMaxPooling1D:
    data_format keepdims=false; GlobalMaxPooling2D: data_format keepdims=false; GlobalMaxPooling3D: data_format keepdims=false;
    GroupNormalization: groups=32 axis=-1 epsilon=0.001 center=true scale=true beta_initializer=zeros gamma_initializer=ones
    beta_regularizer gamma_regularizer beta_constraint gamma_constraint; GroupQueryAttention: head_dim num_query_heads
    num_key_value_heads dropout=0.0 use_bias=true sliding_window flash_attention kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint use_gate=false
    seed; HashedCrossing: num_bins output_mode=int sparse=false name dtype; Hashing: num_bins mask_value salt output_mode=int
    sparse=false; Input: shape batch_size dtype sparse ragged batch_shape name tensor optional=false; InputLayer: shape batch_size dtype
    sparse ragged batch_shape input_tensor optional=false name; InputSpec: dtype shape ndim max_ndim min_ndim axes
    allow_last_axis_squeeze=false name optional=false; IntegerLookup: max_tokens num_oov_indices=1 mask_token oov_token=-1 vocabulary
    vocabulary_dtype=int64 idf_weights invert=false output_mode=int sparse=false pad_to_max_tokens=false oov_method=floormod salt name;
    JaxLayer: call_fn init_fn params state seed native_serialization_platforms; LSTM: units activation=tanh recurrent_activation=sigmoid
    use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros unit_forget_bias=true
    kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint
    bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false return_state=false go_backwards=false stateful=false
    unroll=false use_cudnn=auto; LSTMCell: units activation=tanh recurrent_activation=sigmoid use_bias=true
    kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros unit_forget_bias=true kernel_regularizer
    recurrent_regularizer bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0
    seed; Lambda: function output_shape mask arguments; Layer: activity_regularizer trainable=true dtype autocast=true name;
    LayerNormalization: axis=-1 epsilon=0.001 center=true scale=true beta_initializer=zeros gamma_initializer=ones beta_regularizer
    gamma_regularizer beta_constraint gamma_constraint; LeakyReLU: negative_slope=0.3; Masking: mask_value=0.0; MaxNumBoundingBoxes:
    max_number fill_value=-1; MaxPool1D: pool_size=2 strides padding=valid data_format name; MaxPool2D: pool_size strides padding=valid
    data_format name; MaxPool3D: pool_size strides padding=valid data_format name; MaxPooling1D: pool_size=2 strides padding=valid
    data_format name; MaxPooling2D: pool_size strides padding=valid data_format name; MaxPooling3D: pool_size strides padding=valid
    data_format name; MelSpectrogram: fft_length=2048 sequence_stride=512 sequence_length window=hann sampling_rate=16000
    num_mel_bins=128 min_freq=20.0 max_freq power_to_db=true top_db=80.0 mag_exp=2.0 min_power=1e-10 ref_power=1.0; MixUp: alpha=0.2
    data_format seed; MultiHeadAttention: num_heads key_dim value_dim dropout=0.0 use_bias=true output_shape attention_axes
    sliding_window flash_attention kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint use_gate=false seed; Normalization: axis=-1 mean variance invert=false;
    PReLU: alpha_initializer=Zeros alpha_regularizer alpha_constraint shared_axes; Permute: dims; Pipeline: layers name;
    RMSNormalization: axis=-1 epsilon=1e-06; RNN: cell return_sequences=false return_state=false go_backwards=false stateful=false
    unroll=false zero_output_for_mask=false; RandAugment: value_range num_ops=2 factor=0.5 interpolation=bilinear seed data_format;
    RandomBrightness: factor value_range seed; RandomColorDegeneration: factor value_range data_format seed; RandomColorJitter:
    value_range brightness_factor contrast_factor saturation_factor hue_factor seed data_format; RandomContrast: factor value_range
    seed; RandomCrop: height width seed data_format name; RandomElasticTransform: factor=1.0 scale=1.0 interpolation=bilinear
    fill_mode=reflect fill_value=0.0 value_range seed data_format; RandomErasing: factor=1.0 scale fill_value value_range seed
    data_format; RandomFlip: mode=horizontal_and_vertical seed data_format; RandomGaussianBlur: factor=1.0 kernel_size=3 sigma=1.0
    value_range data_format seed; RandomGrayscale: factor=0.5 data_format seed; RandomHue: factor value_range data_format seed;
    RandomInvert: factor=1.0 value_range seed data_format; RandomPerspective: factor=1.0 scale=1.0 interpolation=bilinear fill_value=0.0
    seed data_format; RandomPosterization: factor value_range data_format seed; RandomRotation: factor fill_mode=reflect
    interpolation=bilinear seed fill_value=0.0 data_format; RandomSaturation: factor value_range data_format seed; RandomSharpness:
    factor value_range data_format seed; RandomShear: x_factor=0.0 y_factor=0.0 interpolation=bilinear fill_mode=reflect fill_value=0.0
    data_format seed; RandomTranslation: height_factor width_factor fill_mode=reflect interpolation=bilinear seed fill_value=0.0
    data_format; RandomZoom: height_factor width_factor fill_mode=reflect interpolation=bilinear seed fill_value=0.0 data_format; ReLU:
    max_value negative_slope=0.0 threshold=0.0; RepeatVector: n; Rescaling: scale offset=0.0; Reshape: target_shape; Resizing: height
    width interpolation=bilinear crop_to_aspect_ratio=false pad_to_aspect_ratio=false fill_mode=constant fill_value=0.0 antialias=false
    data_format; ReversibleEmbedding: input_dim output_dim tie_weights=true embeddings_initializer=uniform embeddings_regularizer
    embeddings_constraint mask_zero=false reverse_dtype logit_soft_cap; STFTSpectrogram: mode=log frame_length=256 frame_step fft_length
    window=hann periodic=false scaling=density padding=valid expand_dims=false data_format; SeparableConv1D: filters kernel_size
    strides=1 padding=valid data_format dilation_rate=1 depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConv2D: filters kernel_size strides
    padding=valid data_format dilation_rate depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConvolution1D: filters kernel_size
    strides=1 padding=valid data_format dilation_rate=1 depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConvolution2D: filters kernel_size strides
    padding=valid data_format dilation_rate depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SimpleRNN: units activation=tanh use_bias=true
    kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros kernel_regularizer recurrent_regularizer
    bias_regularizer activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0
    return_sequences=false return_state=false go_backwards=false stateful=false unroll=false seed; SimpleRNNCell: units activation=tanh
    use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros kernel_regularizer
    recurrent_regularizer bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0
    seed; Softmax: axis=-1; Solarization: addition_factor=0.0 threshold_factor=0.0 value_range seed; SpatialDropout1D: rate seed name
    dtype; SpatialDropout2D: rate data_format seed name dtype; SpatialDropout3D: rate data_format seed name dtype;
    SpectralNormalization: layer power_iterations=1; StackedRNNCells: cells; StringLookup: max_tokens num_oov_indices=1 mask_token
    oov_token vocabulary idf_weights invert=false output_mode=int pad_to_max_tokens=false sparse=false encoding=utf-8 name salt;
    TFSMLayer: filepath call_endpoint=serve call_training_endpoint trainable=true name dtype; TextVectorization: max_tokens
    standardize=lower_and_strip_punctuation split=whitespace ngrams output_mode=int output_sequence_length pad_to_max_tokens=false
    vocabulary idf_weights sparse=false ragged=false encoding=utf-8 name; TimeDistributed: layer; TorchModuleWrapper: module name
    output_shape; UnitNormalization: axis=-1; UpSampling1D: size=2; UpSampling2D: size data_format interpolation=nearest; UpSampling3D:
    size data_format; Wrapper: layer; ZeroPadding1D: padding=1 data_format; ZeroPadding2D: padding data_format; ZeroPadding3D: padding
    data_format; add: inputs; average: inputs; concatenate: inputs axis=-1; deserialize: config custom_objects; dot: inputs axes=-1;
    maximum: inputs; minimum: inputs; multiply: inputs; serialize: layer; subtract: inputs;
  ]],
  ["losses"] = [[
    BinaryCrossentropy: from_logits=false label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size name=binary_crossentropy dtype;
    BinaryFocalCrossentropy: apply_class_balancing=false alpha=0.25 gamma=2.0 from_logits=false label_smoothing=0.0 axis=-1
    reduction=sum_over_batch_size name=binary_focal_crossentropy dtype; CTC: reduction=sum_over_batch_size name=ctc dtype;
    CategoricalCrossentropy: from_logits=false label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size name=categorical_crossentropy
    dtype; CategoricalFocalCrossentropy: alpha=0.25 gamma=2.0 from_logits=false label_smoothing=0.0 axis=-1
    reduction=sum_over_batch_size name=categorical_focal_crossentropy dtype; CategoricalGeneralizedCrossEntropy: q=0.5
    reduction=sum_over_batch_size name=categorical_generalized_cross_entropy dtype; CategoricalHinge: reduction=sum_over_batch_size
    name=categorical_hinge dtype; Circle: gamma=80.0 margin=0.4 remove_diagonal=true reduction=sum_over_batch_size name=circle dtype;
    CosineSimilarity: axis=-1 reduction=sum_over_batch_size name=cosine_similarity dtype; Dice: reduction=sum_over_batch_size name=dice
    axis dtype; Hinge: reduction=sum_over_batch_size name=hinge dtype; Huber: delta=1.0 reduction=sum_over_batch_size name=huber_loss
    dtype; KLDivergence: reduction=sum_over_batch_size name=kl_divergence dtype; LogCosh: reduction=sum_over_batch_size name=log_cosh
    dtype; Loss: name reduction=sum_over_batch_size dtype; MeanAbsoluteError: reduction=sum_over_batch_size name=mean_absolute_error
    dtype; MeanAbsolutePercentageError: reduction=sum_over_batch_size name=mean_absolute_percentage_error dtype; MeanSquaredError:
    reduction=sum_over_batch_size name=mean_squared_error dtype; MeanSquaredLogarithmicError: reduction=sum_over_batch_size
    name=mean_squared_logarithmic_error dtype; Poisson: reduction=sum_over_batch_size name=poisson dtype; SparseCategoricalCrossentropy:
    from_logits=false ignore_class reduction=sum_over_batch_size axis=-1 name=sparse_categorical_crossentropy dtype; SquaredHinge:
    reduction=sum_over_batch_size name=squared_hinge dtype; Tversky: alpha=0.5 beta=0.5 reduction=sum_over_batch_size name=tversky axis
    dtype; binary_crossentropy: y_true y_pred from_logits=false label_smoothing=0.0 axis=-1; binary_focal_crossentropy: y_true y_pred
    apply_class_balancing=false alpha=0.25 gamma=2.0 from_logits=false label_smoothing=0.0 axis=-1; categorical_crossentropy: y_true
    y_pred from_logits=false label_smoothing=0.0 axis=-1; categorical_focal_crossentropy: y_true y_pred alpha=0.25 gamma=2.0
    from_logits=false label_smoothing=0.0 axis=-1; categorical_generalized_cross_entropy: y_true y_pred q; categorical_hinge: y_true
    y_pred; circle: y_true y_pred ref_labels ref_embeddings remove_diagonal=true gamma=80 margin=0.4; cosine_similarity: y_true y_pred
    axis=-1; ctc: y_true y_pred; deserialize: name custom_objects; dice: y_true y_pred axis; get: identifier; hinge: y_true y_pred;
    huber: y_true y_pred delta=1.0; kl_divergence: y_true y_pred; log_cosh: y_true y_pred; mean_absolute_error: y_true y_pred;
    mean_absolute_percentage_error: y_true y_pred; mean_squared_error: y_true y_pred; mean_squared_logarithmic_error: y_true y_pred;
    poisson: y_true y_pred; serialize: loss; sparse_categorical_crossentropy: y_true y_pred from_logits=false ignore_class axis=-1;
    squared_hinge: y_true y_pred; tversky: y_true y_pred alpha=0.5 beta=0.5 axis;
  ]],
  ["metrics"] = [[
    AUC: num_thresholds=200 curve=ROC summation_method=interpolation name dtype thresholds multi_label=false num_labels label_weights
    from_logits=false; Accuracy: name=accuracy dtype; BinaryAccuracy: name=binary_accuracy dtype threshold=0.5; BinaryCrossentropy:
    name=binary_crossentropy dtype from_logits=false label_smoothing=0; BinaryIoU: target_class_ids threshold=0.5 name dtype;
    CategoricalAccuracy: name=categorical_accuracy dtype; CategoricalCrossentropy: name=categorical_crossentropy dtype from_logits=false
    label_smoothing=0 axis=-1; CategoricalHinge: name=categorical_hinge dtype; ConcordanceCorrelation: name=concordance_correlation
    dtype axis=-1; CosineSimilarity: name=cosine_similarity dtype axis=-1; F1Score: average threshold name=f1_score dtype; FBetaScore:
    average beta=1.0 threshold name=fbeta_score dtype; FalseNegatives: thresholds name dtype; FalsePositives: thresholds name dtype;
    Hinge: name=hinge dtype; IoU: num_classes target_class_ids name dtype ignore_class sparse_y_true=true sparse_y_pred=true axis=-1;
    KLDivergence: name=kl_divergence dtype; LogCoshError: name=logcosh dtype; Mean: name=mean dtype; MeanAbsoluteError:
    name=mean_absolute_error dtype; MeanAbsolutePercentageError: name=mean_absolute_percentage_error dtype; MeanIoU: num_classes name
    dtype ignore_class sparse_y_true=true sparse_y_pred=true axis=-1; MeanMetricWrapper: fn name dtype; MeanSquaredError:
    name=mean_squared_error dtype; MeanSquaredLogarithmicError: name=mean_squared_logarithmic_error dtype; Metric: dtype name;
    OneHotIoU: num_classes target_class_ids name dtype ignore_class sparse_y_pred=false axis=-1; OneHotMeanIoU: num_classes name dtype
    ignore_class sparse_y_pred=false axis=-1; PearsonCorrelation: name=pearson_correlation dtype axis=-1; Poisson: name=poisson dtype;
    Precision: thresholds top_k class_id name dtype; PrecisionAtRecall: recall num_thresholds=200 class_id name dtype; R2Score:
    class_aggregation=uniform_average num_regressors=0 name=r2_score dtype; Recall: thresholds top_k class_id name dtype;
    RecallAtPrecision: precision num_thresholds=200 class_id name dtype; RootMeanSquaredError: name=root_mean_squared_error dtype;
    SensitivityAtSpecificity: specificity num_thresholds=200 class_id name dtype; SparseCategoricalAccuracy:
    name=sparse_categorical_accuracy dtype; SparseCategoricalCrossentropy: name=sparse_categorical_crossentropy dtype from_logits=false
    ignore_class axis=-1; SparseTopKCategoricalAccuracy: k=5 name=sparse_top_k_categorical_accuracy dtype from_sorted_ids=false;
    SpecificityAtSensitivity: sensitivity num_thresholds=200 class_id name dtype; SquaredHinge: name=squared_hinge dtype; Sum: name=sum
    dtype; TopKCategoricalAccuracy: k=5 name=top_k_categorical_accuracy dtype; TrueNegatives: thresholds name dtype; TruePositives:
    thresholds name dtype; binary_accuracy: y_true y_pred threshold=0.5; binary_crossentropy: y_true y_pred from_logits=false
    label_smoothing=0.0 axis=-1; binary_focal_crossentropy: y_true y_pred apply_class_balancing=false alpha=0.25 gamma=2.0
    from_logits=false label_smoothing=0.0 axis=-1; categorical_accuracy: y_true y_pred; categorical_crossentropy: y_true y_pred
    from_logits=false label_smoothing=0.0 axis=-1; categorical_focal_crossentropy: y_true y_pred alpha=0.25 gamma=2.0 from_logits=false
    label_smoothing=0.0 axis=-1; categorical_hinge: y_true y_pred; concordance_correlation: y_true y_pred axis=-1; deserialize: config
    custom_objects; get: identifier; hinge: y_true y_pred; huber: y_true y_pred delta=1.0; kl_divergence: y_true y_pred; log_cosh:
    y_true y_pred; mean_absolute_error: y_true y_pred; mean_absolute_percentage_error: y_true y_pred; mean_squared_error: y_true y_pred;
    mean_squared_logarithmic_error: y_true y_pred; pearson_correlation: y_true y_pred axis=-1; poisson: y_true y_pred; serialize:
    metric; sparse_categorical_accuracy: y_true y_pred; sparse_categorical_crossentropy: y_true y_pred from_logits=false ignore_class
    axis=-1; sparse_top_k_categorical_accuracy: y_true y_pred k=5 from_sorted_ids=false; squared_hinge: y_true y_pred;
    top_k_categorical_accuracy: y_true y_pred k=5;
  ]],
  ["callbacks"] = [[
    BackupAndRestore: backup_dir save_freq=epoch double_checkpoint=false delete_checkpoint=true; CSVLogger: filename separator
    append=false; CallbackList: callbacks add_history=false add_progbar=false model; EarlyStopping: monitor=val_loss min_delta=0
    patience=0 verbose=0 mode=auto baseline restore_best_weights=false start_from_epoch=0; LambdaCallback: on_epoch_begin on_epoch_end
    on_train_begin on_train_end on_train_batch_begin on_train_batch_end; LearningRateScheduler: schedule verbose=0; ModelCheckpoint:
    filepath monitor=val_loss verbose=0 save_best_only=false save_weights_only=false mode=auto save_freq=epoch initial_value_threshold;
    OrbaxCheckpoint: directory monitor=val_loss verbose=0 save_best_only=false mode=auto save_freq=epoch initial_value_threshold
    max_to_keep=1 save_on_background=true save_weights_only=false; ReduceLROnPlateau: monitor=val_loss factor=0.1 patience=10 verbose=0
    mode=auto min_delta=0.0001 cooldown=0 min_lr=0.0; RemoteMonitor: root path field=data headers send_as_json=false; SwapEMAWeights:
    swap_on_epoch=false; TensorBoard: log_dir=logs histogram_freq=0 write_graph=true write_images=false write_steps_per_second=false
    update_freq=epoch profile_batch=0 embeddings_freq=0 embeddings_metadata; TerminateOnNaN: raise_error=false;
  ]],
  ["optimizers"] = [[
    Adadelta: learning_rate=0.001 rho=0.95 epsilon=1e-07 weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99
    ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adafactor: learning_rate=0.001 beta_2_decay=-0.8
    epsilon_1=1e-30 epsilon_2=0.001 clip_threshold=1.0 relative_step=true weight_decay clipnorm clipvalue global_clipnorm use_ema=false
    ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adagrad: learning_rate=0.001
    initial_accumulator_value=0.1 epsilon=1e-07 weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99
    ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adam: learning_rate=0.001 beta_1=0.9 beta_2=0.999
    epsilon=1e-07 amsgrad=false weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; AdamW: learning_rate=0.001 weight_decay=0.004 beta_1=0.9 beta_2=0.999
    epsilon=1e-07 amsgrad=false clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; Adamax: learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 weight_decay
    clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; Ftrl: learning_rate=0.001 learning_rate_power=-0.5 initial_accumulator_value=0.1
    l1_regularization_strength=0.0 l2_regularization_strength=0.0 l2_shrinkage_regularization_strength=0.0 beta=0.0 weight_decay
    clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; Lamb: learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Lion:
    learning_rate=0.001 beta_1=0.9 beta_2=0.99 weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99
    ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; LossScaleOptimizer: inner_optimizer
    initial_scale=32768.0 dynamic_growth_steps=2000 name; MultiOptimizer: optimizer_map loss_scale_factor name; Muon:
    learning_rate=0.001 adam_beta_1=0.9 adam_beta_2=0.999 adam_weight_decay=0.004 epsilon=1e-07 weight_decay=0.004 clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name
    exclude_layers exclude_embeddings=true muon_a=3.4445 muon_b=-4.775 muon_c=2.0315 adam_lr_ratio=1 momentum=0.95 ns_steps=5
    nesterov=true rms_rate=0.2; Nadam: learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    OptimizerMap: default_optimizer optimizer_map; RMSprop: learning_rate=0.001 rho=0.9 momentum=0.0 epsilon=1e-07 centered=false
    weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; SGD: learning_rate=0.01 momentum=0.0 nesterov=false weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    ScheduleFreeAdamW: learning_rate=0.0025 beta_1=0.9 beta_2=0.999 epsilon=1e-08 warmup_steps=0 weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    deserialize: config custom_objects; get: identifier; serialize: optimizer;
  ]],
  ["optimizers.schedules"] = [[
    CosineDecay: initial_learning_rate decay_steps alpha=0.0 name=CosineDecay warmup_target warmup_steps=0; CosineDecayRestarts:
    initial_learning_rate first_decay_steps t_mul=2.0 m_mul=1.0 alpha=0.0 name=SGDRDecay; ExponentialDecay: initial_learning_rate
    decay_steps decay_rate staircase=false name=ExponentialDecay; InverseTimeDecay: initial_learning_rate decay_steps decay_rate
    staircase=false name=InverseTimeDecay; PiecewiseConstantDecay: boundaries values name=PiecewiseConstant; PolynomialDecay:
    initial_learning_rate decay_steps end_learning_rate=0.0001 power=1.0 cycle=false name=PolynomialDecay; deserialize: config
    custom_objects; serialize: learning_rate_schedule;
  ]],
  ["initializers"] = [[
    Constant: value=0.0; GlorotNormal: seed input_axes output_axes; GlorotUniform: seed input_axes output_axes; HeNormal: seed
    input_axes output_axes; HeUniform: seed input_axes output_axes; Identity: gain=1.0; IdentityInitializer: gain=1.0; LecunNormal: seed
    input_axes output_axes; LecunUniform: seed input_axes output_axes; Orthogonal: gain=1.0 seed; OrthogonalInitializer: gain=1.0 seed;
    RandomNormal: mean=0.0 stddev=0.05 seed; RandomUniform: minval=-0.05 maxval=0.05 seed; STFT: side=real window=hann scaling=density
    periodic=false; STFTInitializer: side=real window=hann scaling=density periodic=false; TruncatedNormal: mean=0.0 stddev=0.05 seed;
    VarianceScaling: scale=1.0 mode=fan_in distribution=truncated_normal seed input_axes output_axes; constant: value=0.0; deserialize:
    config custom_objects; get: identifier; glorot_normal: seed input_axes output_axes; glorot_uniform: seed input_axes output_axes;
    he_normal: seed input_axes output_axes; he_uniform: seed input_axes output_axes; identity: gain=1.0; lecun_normal: seed input_axes
    output_axes; lecun_uniform: seed input_axes output_axes; orthogonal: gain=1.0 seed; random_normal: mean=0.0 stddev=0.05 seed;
    random_uniform: minval=-0.05 maxval=0.05 seed; serialize: initializer; stft: side=real window=hann scaling=density periodic=false;
    truncated_normal: mean=0.0 stddev=0.05 seed; variance_scaling: scale=1.0 mode=fan_in distribution=truncated_normal seed input_axes
    output_axes;
  ]],
  ["regularizers"] = [[
    L1: l1=0.01; L1L2: l1=0.0 l2=0.0; L2: l2=0.01; OrthogonalRegularizer: factor=0.01 mode=rows; deserialize: config custom_objects;
    get: identifier; l1: l1=0.01; l1_l2: l1=0.0 l2=0.0; l2: l2=0.01; orthogonal_regularizer: factor=0.01 mode=rows; serialize:
    regularizer;
  ]],
  ["constraints"] = [[
    MaxNorm: max_value=2 axis=0; MinMaxNorm: min_value=0.0 max_value=1.0 rate=1.0 axis=0; UnitNorm: axis=0; deserialize: config
    custom_objects; get: identifier; max_norm: max_value=2 axis=0; min_max_norm: min_value=0.0 max_value=1.0 rate=1.0 axis=0; serialize:
    constraint; unit_norm: axis=0;
  ]],
  ["activations"] = [[
    celu: x alpha=1.0; deserialize: config custom_objects; elu: x alpha=1.0; exponential: x; gelu: x approximate=false; get: identifier;
    glu: x axis=-1; hard_shrink: x threshold=0.5; hard_sigmoid: x; hard_silu: x; hard_swish: x; hard_tanh: x; leaky_relu: x
    negative_slope=0.2; linear: x; log_sigmoid: x; log_softmax: x axis=-1; mish: x; relu: x negative_slope=0.0 max_value threshold=0.0;
    relu6: x; selu: x; serialize: activation; sigmoid: x; silu: x; soft_shrink: x threshold=0.5; softmax: x axis=-1; softplus: x;
    softsign: x; sparse_plus: x; sparse_sigmoid: x; sparsemax: x axis=-1; squareplus: x b=4; swish: x; tanh: x; tanh_shrink: x;
    threshold: x threshold default_value;
  ]],
  ["applications"] = [[
    ConvNeXtBase: include_top=true include_preprocessing=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=convnext_base; ConvNeXtLarge: include_top=true include_preprocessing=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=convnext_large; ConvNeXtSmall: include_top=true
    include_preprocessing=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=convnext_small; ConvNeXtTiny: include_top=true include_preprocessing=true weights=imagenet input_tensor input_shape pooling
    classes=1000 classifier_activation=softmax name=convnext_tiny; ConvNeXtXLarge: include_top=true include_preprocessing=true
    weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=convnext_xlarge; DenseNet121:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=densenet121;
    DenseNet169: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=densenet169; DenseNet201: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=densenet201; EfficientNetB0: include_top=true weights=imagenet input_tensor input_shape pooling
    classes=1000 classifier_activation=softmax name=efficientnetb0; EfficientNetB1: include_top=true weights=imagenet input_tensor
    input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb1; EfficientNetB2: include_top=true
    weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb2; EfficientNetB3:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb3;
    EfficientNetB4: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=efficientnetb4; EfficientNetB5: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=efficientnetb5; EfficientNetB6: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax name=efficientnetb6; EfficientNetB7: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb7; EfficientNetV2B0: include_top=true
    weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax include_preprocessing=true
    name=efficientnetv2-b0; EfficientNetV2B1: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax include_preprocessing=true name=efficientnetv2-b1; EfficientNetV2B2: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax include_preprocessing=true name=efficientnetv2-b2;
    EfficientNetV2B3: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    include_preprocessing=true name=efficientnetv2-b3; EfficientNetV2L: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax include_preprocessing=true name=efficientnetv2-l; EfficientNetV2M:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    include_preprocessing=true name=efficientnetv2-m; EfficientNetV2S: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax include_preprocessing=true name=efficientnetv2-s; InceptionResNetV2:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=inception_resnet_v2; InceptionV3: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=inception_v3; MobileNet: input_shape alpha=1.0 depth_multiplier=1 dropout=0.001 include_top=true
    weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name; MobileNetV2: input_shape alpha=1.0
    include_top=true weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name; MobileNetV3Large:
    input_shape alpha=1.0 minimalistic=false include_top=true weights=imagenet input_tensor classes=1000 pooling dropout_rate=0.2
    classifier_activation=softmax include_preprocessing=true name=MobileNetV3Large; MobileNetV3Small: input_shape alpha=1.0
    minimalistic=false include_top=true weights=imagenet input_tensor classes=1000 pooling dropout_rate=0.2
    classifier_activation=softmax include_preprocessing=true name=MobileNetV3Small; NASNetLarge: input_shape include_top=true
    weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name=nasnet_large; NASNetMobile: input_shape
    include_top=true weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name=nasnet_mobile; ResNet101:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=resnet101;
    ResNet101V2: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=resnet101v2; ResNet152: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=resnet152; ResNet152V2: include_top=true weights=imagenet input_tensor input_shape pooling
    classes=1000 classifier_activation=softmax name=resnet152v2; ResNet50: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax name=resnet50; ResNet50V2: include_top=true weights=imagenet input_tensor
    input_shape pooling classes=1000 classifier_activation=softmax name=resnet50v2; VGG16: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=vgg16; VGG19: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=vgg19; Xception: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=xception;
  ]],
  ["backend"] = [[
    clear_session: free_memory=true; get_uid: prefix; is_float_dtype: dtype; is_int_dtype: dtype; is_keras_tensor: x; set_epsilon:
    value; set_floatx: value; set_image_data_format: data_format; standardize_dtype: dtype;
  ]],
  ["config"] = [[
    set_backend: backend; set_dtype_policy: policy; set_epsilon: value; set_floatx: value; set_image_data_format: data_format;
    set_max_epochs: max_epochs; set_max_steps_per_epoch: max_steps_per_epoch;
  ]],
  ["distribution"] = [[
    DataParallel: device_mesh devices auto_shard_dataset=true; DeviceMesh: shape axis_names devices; LayoutMap: device_mesh;
    ModelParallel: layout_map batch_dim_name auto_shard_dataset=true; TensorLayout: axes device_mesh; distribute_tensor: tensor layout;
    get_device_count: device_type; initialize: job_addresses num_processes process_id; list_devices: device_type; set_distribution:
    value;
  ]],
  ["models"] = [[
    Sequential: layers trainable=true name; clone_model: model input_tensors clone_function call_function recursive=false; load_model:
    filepath custom_objects compile=true safe_mode=true; model_from_json: json_string custom_objects; save_model: model filepath
    overwrite=true zipped;
  ]],
  ["preprocessing"] = [[
    image_dataset_from_directory: directory labels=inferred label_mode=int class_names color_mode=rgb batch_size=32 image_size
    shuffle=true seed validation_split subset interpolation=bilinear follow_links=false crop_to_aspect_ratio=false
    pad_to_aspect_ratio=false data_format format=tf verbose=true; text_dataset_from_directory: directory labels=inferred label_mode=int
    class_names batch_size=32 max_length shuffle=true seed validation_split subset follow_links=false format=tf verbose=true;
    timeseries_dataset_from_array: data targets sequence_length sequence_stride=1 sampling_rate=1 batch_size=128 shuffle=false seed
    start_index end_index format=tf;
  ]],
  ["preprocessing.image"] = [[
    array_to_img: x data_format scale=true dtype; img_to_array: img data_format dtype; load_img: path color_mode=rgb target_size
    interpolation=nearest keep_aspect_ratio=false; save_img: path x data_format file_format scale=true; smart_resize: x size
    interpolation=bilinear data_format=channels_last;
  ]],
  ["preprocessing.sequence"] = [[
    pad_sequences: sequences maxlen dtype=int32 padding=pre truncating=pre value=0.0;
  ]],
  ["saving"] = [[
    CustomObjectScope: custom_objects; KerasFileEditor: filepath; custom_object_scope: custom_objects; deserialize_keras_object: config
    custom_objects safe_mode=true; get_registered_name: obj; get_registered_object: name custom_objects module_objects; load_model:
    filepath custom_objects compile=true safe_mode=true; load_weights: model filepath skip_mismatch=false; register_keras_serializable:
    package=Custom name; save_model: model filepath overwrite=true zipped; save_weights: model filepath overwrite=true max_shard_size;
    serialize_keras_object: obj;
  ]],
  ["tree"] = [[
    assert_same_paths: a b; assert_same_structure: a b check_types; flatten: structure; flatten_with_path: structure; is_nested:
    structure; lists_to_tuples: structure; map_shape_structure: func structure; map_structure: func none_is_leaf=true;
    map_structure_up_to: shallow_structure func; pack_sequence_as: structure flat_sequence; traverse: func structure top_down=true;
  ]],
}
