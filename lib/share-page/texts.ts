/** Texts of the pages of links, which load no catalogue: they have no scripts. */
const english = {
  language: 'en',
  madeWith: 'A video made with Kinora',
  /** What stands before and after the date. */
  facts: (size: string, seconds: number): readonly [string, string] => [
    `${size}, ${seconds} s, made on `,
    ' with a generative model',
  ],
  open: 'Open in Kinora',
  prompt: 'Prompt',
  negativePrompt: 'Negative prompt',
  settings: 'Settings',
  startImage: 'Start image',
  startImageIs: 'The image that the video starts from',
  endImage: 'End image',
  endImageIs: 'The image that the video ends in',
  make: 'Make a video with Kinora',
  report: 'Report this video',
  flagged: 'The safety check takes this for nudity or sex; it may err. Show it all the same',
  description: (seconds: number) =>
    `A ${seconds}-second video, made from one image on a graphics card.`,
  ended: 'This link has ended',
  endedText:
    'It has expired, or the person who shared the video has withdrawn it. Ask them for a new link.',
  unknown: 'There is no such link',
  unknownText: 'Compare the address with the one that you were sent: a part of it may be missing.',
  model: 'Model',
  profile: 'Profile',
  standard: 'Standard',
  ultraFast: 'Ultra-fast',
  size: 'Size',
  sizeOf: (size: string, seconds: number) => `${size}, ${seconds} s`,
  steps: 'Steps',
  guidance: 'Guidance',
  seed: 'Seed',
  adapters: 'Adapters',
  notPublic: (count: number) => `${count} not public`,
};

export type PageTexts = typeof english;

const chinese: PageTexts = {
  language: 'zh',
  madeWith: '用 Kinora 制作的视频',
  facts: (size, seconds) => [`${size}，${seconds} 秒，由生成式模型制作于 `, ''],
  open: '在 Kinora 中打开',
  prompt: '提示词',
  negativePrompt: '负面提示词',
  settings: '设置',
  startImage: '起始图片',
  startImageIs: '视频开始的图片',
  endImage: '结束图片',
  endImageIs: '视频结束的图片',
  make: '用 Kinora 制作视频',
  report: '举报这个视频',
  flagged: '安全检查认为这含有裸露或性内容，它可能出错。仍然显示',
  description: (seconds) => `${seconds} 秒的视频，由一张图片在显卡上制作。`,
  ended: '此链接已失效',
  endedText: '它已过期，或分享视频的人已撤回。请向对方索取新的链接。',
  unknown: '没有这个链接',
  unknownText: '请与你收到的地址核对：可能缺少了一部分。',
  model: '模型',
  profile: '档位',
  standard: '标准',
  ultraFast: '极速',
  size: '尺寸',
  sizeOf: (size, seconds) => `${size}，${seconds} 秒`,
  steps: '步数',
  guidance: '引导强度',
  seed: '种子',
  adapters: '适配器',
  notPublic: (count) => `${count} 个未公开`,
};

/** The texts for a visitor: of the languages that there are the most wanted one, by the order of the header. */
export function textsFor(acceptLanguage: string | null): PageTexts {
  const preferences = (acceptLanguage ?? '')
    .split(',')
    .map((entry) => {
      const [tag = '', quality] = entry
        .trim()
        .toLowerCase()
        .split(/\s*;\s*q=/);
      return { language: tag.split('-')[0], quality: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ language, quality }) => (language === 'en' || language === 'zh') && quality > 0)
    .sort((a, b) => b.quality - a.quality);
  return preferences[0]?.language === 'zh' ? chinese : english;
}
