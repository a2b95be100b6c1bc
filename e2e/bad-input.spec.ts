import { expect, full, payload, picturePath, test } from './support/fixtures';

for (const [title, file, code] of [
  ['a file that is no image', payload('notes.png', Buffer.from('My notes.')), 'IMAGE_UNREADABLE'],
  ['a video of another kind', payload('v.mp4', Buffer.alloc(64), 'video/mp4'), 'VIDEO_UNREADABLE'],
] as const) {
  test(`${title} is refused with a sentence and a remedy, and the image stays`, async ({
    studio,
    page,
  }) => {
    const problem = studio.problem(code);
    const start = page.getByRole('img', { name: /^Start image/ });
    await studio.image.setInputFiles(file);
    await expect(problem).toContainText(/\..+\./);
    await expect(start).toHaveCount(0);
    await studio.image.setInputFiles(picturePath);
    await expect(start).toBeVisible();
    await expect(problem).toHaveCount(0);
    await studio.image.setInputFiles(file);
    await expect(problem).toBeVisible();
    await expect(start).toBeVisible();
  });
}

test('HEIC has a sentence of its own, and its remedy leads to the help', async ({
  studio,
  page,
}) => {
  const header = Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic----');
  await studio.image.setInputFiles(payload('photo.heic', header, 'image/heic'));
  const problem = studio.problem('IMAGE_HEIC');
  await expect(problem).toContainText('JPEG');
  await problem.getByRole('link', { name: 'More about this' }).click();
  await expect(page).toHaveURL('/help#IMAGE_HEIC');
  await expect(page.getByRole('heading', { name: 'The image is refused' })).toBeInViewport();
});

test(
  'without image and prompt nothing starts, and the first gap gets the focus',
  full,
  async ({ studio }) => {
    await studio.generateButton.click();
    await expect(studio.image).toBeFocused();
    await expect(studio.image).toHaveAccessibleDescription(/^There is no image\. \S/);
    await expect(studio.prompt).toHaveAccessibleDescription(/^The prompt is empty\. \S/);
    await studio.image.setInputFiles(picturePath);
    await expect(studio.page.getByRole('img', { name: /^Start image/ })).toBeVisible();
    await studio.prompt.fill('   ');
    await studio.generateButton.click();
    await expect(studio.prompt).toBeFocused();
    await expect(studio.progress).toHaveCount(0);
    await expect(studio.history).toHaveCount(0);
  },
);

test(
  'a number out of its range is marked at its field, and starts nothing',
  full,
  async ({ studio }) => {
    await studio.fill({ image: picturePath, prompt: 'A boat', steps: 41 });
    const sentence = /Steps must be a whole number from 1 to 40\./;
    await expect(studio.steps).toHaveAccessibleDescription(sentence);
    await studio.generateButton.click();
    await expect(studio.steps).toBeFocused();
    await expect(studio.progress).toHaveCount(0);
  },
);
