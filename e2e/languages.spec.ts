import { expect, expectAccessible, full, test, withSilentConsole } from './support/fixtures';

test.use({ locale: 'zh-CN' });

const light = [{ colorScheme: 'light', width: 1280 }] as const;

/** Pages in Chinese: the title, and a heading where the page has its own. */
const pages = [
  { path: '/', title: 'Kinora', link: '工作室' },
  { path: '/models', title: '模型 · Kinora', link: '模型', heading: '添加模型' },
  { path: '/serve', title: '提供服务 · Kinora', link: 'API', heading: '未连接' },
  { path: '/keys', title: '密钥 · Kinora', link: '密钥', heading: '登录' },
  { path: '/settings', title: '设置 · Kinora', link: '设置', heading: '外观' },
] as const;

test(
  'pages are in the language of the browser, until another one is chosen',
  full,
  async ({ page }) => {
    await withSilentConsole(page, async () => {
      await page.goto('/');
      await page.getByRole('contentinfo').getByRole('link', { name: '帮助' }).click();
      await expect(page).toHaveTitle('帮助 · Kinora');
      await expect(page.getByRole('heading', { name: '出现问题时' })).toBeVisible();
      await expectAccessible(page, light);
      const navigation = page.getByRole('navigation');
      for (const { path, title, link, ...more } of pages) {
        await test.step(path, async () => {
          await navigation.getByRole('link', { name: link, exact: true }).click();
          await expect(page).toHaveURL(path);
          await expect(page).toHaveTitle(title);
          await expect(page.locator('html')).toHaveAttribute('lang', 'zh');
          if ('heading' in more) {
            await expect(
              page.getByRole('heading', { name: more.heading, exact: true }),
            ).toBeVisible();
          }
          await expectAccessible(page, light);
        });
      }

      await navigation.getByRole('link', { name: 'API', exact: true }).click();
      await navigation.getByRole('link', { name: '文档', exact: true }).click();
      await expect(page.getByText('API 文档只有英文版。')).toBeVisible();
      await expect(page.getByRole('main')).toHaveAttribute('lang', 'en');
      await page.goto('/help#OUT_OF_MEMORY');
      await expect(page.getByRole('heading', { name: 'GPU 内存不足' })).toBeInViewport();
      await page.goto('/settings');

      const english = page.getByRole('radio', { name: 'English' });
      await english.check();
      const expectEnglish = async () => {
        await expect(page).toHaveTitle('Settings · Kinora');
        await expect(page.locator('html')).toHaveAttribute('lang', 'en');
        await expect(page.getByRole('heading', { name: 'Appearance' })).toBeVisible();
        await expect(english).toBeChecked();
      };
      await expectEnglish();
      await expect(english).toBeFocused();
      await page.reload();
      await expectEnglish();
      await page.getByRole('link', { name: 'Models', exact: true }).click();
      await expect(page).toHaveTitle('Models · Kinora');
    });
  },
);
