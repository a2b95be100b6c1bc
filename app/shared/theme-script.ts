/** Where the theme is stored, as JSON. */
export const themeKey = 'kinora:theme';

/** Colours of the window's frame on devices that show one: those of the page. */
export const frameColors = { light: '#faf8f5', dark: '#151312' } as const;

/**
 * A script that sets the colours which the user has chosen, in the page's head: before the first paint, so
 * that no page flashes in the other ones, and whenever they change in any tab.
 */
export const themeScript = `{
  const root = document.documentElement;
  const frame = document.createElement('meta');
  frame.name = 'theme-color';
  const colors = ${JSON.stringify(frameColors)};
  const apply = () => {
    let theme = null;
    try {
      theme = JSON.parse(localStorage.getItem('${themeKey}'));
    } catch {}
    const color = Object.hasOwn(colors, theme) ? colors[theme] : null;
    if (color === null) {
      delete root.dataset.theme;
      frame.remove();
    } else {
      root.dataset.theme = theme;
      frame.content = color;
      document.head.prepend(frame);
    }
  };
  apply();
  addEventListener('storage', apply);
}`;
