import type { Texts } from '../catalogue';

/** Names that page and command line share. */
export const names: Texts['messages']['names'] = {
  phase: {
    optimise: '优化提示词',
    load: '加载模型',
    text: '读取提示词',
    image: '读取图片',
    denoise: '去噪',
    decode: '解码画面',
    check: '检查画面',
    finish: '写入文件',
  },
  outcome: {
    completed: '完成',
    failed: '失败',
    lost: '已取消或被接管',
    released: '已交还',
  },
  profile: { standard: '标准', 'ultra-fast': '草稿' },
  component: {
    configuration: { name: '配置', purpose: '模型的各项尺寸和分词器' },
    transformer: { name: 'Transformer', purpose: '一步一步地给潜变量去噪' },
    transformer_2: { name: '低噪声 Transformer', purpose: '噪声低时接手' },
    image_encoder: { name: '图像编码器', purpose: '描述起始图片' },
    text_encoder: { name: '文本编码器', purpose: '读取提示词' },
    vae: { name: 'VAE', purpose: '在图片和潜变量之间转换' },
    light_decoder: {
      name: '轻量解码器（实验性）',
      purpose: '解码只需约四分之一的时间；质量尚不清楚',
    },
    tiny_decoder: { name: '小型解码器', purpose: '很快地解码极速视频' },
    adapter: { name: '少步适配器', purpose: '让极速视频只需几步就能完成' },
    guidance_adapter: { name: '引导适配器', purpose: '让每一步只需计算一遍，而不是两遍' },
    safety_checker: { name: '安全检查模型', purpose: '标出可能不适合工作场合的视频' },
    language_model: { name: '语言模型', purpose: '续写提示词' },
  },
};
