import { appPath } from '../../../lib/contract/site';

/**
 * Scalar's settings: our document, fonts and colours. Everything that would contact another host (fonts,
 * proxy, registry, assistant, telemetry) is off.
 */
export function configuration(isDark: boolean): object {
  return {
    url: appPath('/openapi.json'),
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: 'never',
    hideClientButton: true,
    hideSearch: true,
    hiddenClients: {
      c: true,
      clojure: true,
      csharp: true,
      dart: true,
      fsharp: true,
      go: true,
      http: true,
      java: true,
      kotlin: true,
      objc: true,
      ocaml: true,
      php: true,
      powershell: true,
      r: true,
      ruby: true,
      rust: true,
      swift: true,
    },
    hideDarkModeToggle: true,
    forceDarkModeState: isDark ? 'dark' : 'light',
    documentDownloadType: 'none',
    defaultOpenAllTags: false,
    persistAuth: false,
    theme: 'none',
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
    customCss: customCss(isDark ? 'dark' : 'light'),
  };
}

/**
 * Sets Scalar's CSS variables from ours, for the colour scheme of the page. On a light page Scalar's
 * examples stay dark, so they keep Scalar's colours.
 */
const customCss = (scheme: 'light' | 'dark') => `
.${scheme}-mode {
  --scalar-font: var(--sans);
  --scalar-background-1: var(--paper);
  --scalar-background-2: var(--surface);
  --scalar-background-3: var(--sunken);
  --scalar-background-accent: var(--accent-wash);
  --scalar-border-color: var(--line);
  --scalar-color-1: var(--ink);
  --scalar-color-2: var(--ink-soft);
  --scalar-color-3: var(--ink-soft);
  --scalar-color-accent: var(--accent-strong);
  --scalar-link-color: var(--accent-strong);
  --scalar-radius: var(--radius-small);
}
.light-mode.light-mode {
  --scalar-color-green: #1d6b3d;
  --scalar-color-blue: #1c5d99;
  --scalar-color-orange: #8f4b00;
  --scalar-color-red: #a8201a;
  --scalar-color-purple: #5203d1;
  --scalar-color-yellow: #7a5a00;
}
.dark-mode.dark-mode {
  --scalar-color-red: #ff9b94;
}
`;
