/** Colours, sizes and defaults of every component, in one place. */
import { createTheme, localStorageColorSchemeManager, type MantineColorsTuple } from '@mantine/core';

const iris: MantineColorsTuple = [
  '#eef2ff',
  '#dde4fd',
  '#b9c6f8',
  '#92a5f3',
  '#7189ee',
  '#5b76ea',
  '#4263eb',
  '#3b5bdb',
  '#334fc0',
  '#2a43a6',
];
/** Neutral with a little blue, so that cards stand out from the page without a hard border. */
const dark: MantineColorsTuple = [
  '#d5d9e2',
  '#b3b9c7',
  '#949cad',
  '#6a7183',
  '#3a4152',
  '#2b3140',
  '#1e2330',
  '#171b26',
  '#11141d',
  '#0c0f16',
];

/** Where the choice of light or dark is kept; public/scheme.js reads the same name. */
export const colorSchemeManager = localStorageColorSchemeManager({ key: 'console-color-scheme' });

/** Inter is shipped (style.css) and has Latin letters and figures; other scripts come from the system. */
const family =
  '"Inter Variable", -apple-system, BlinkMacSystemFont, "Segoe UI", "Noto Sans", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", sans-serif';

/** `closeLabel` names the cross of dialogs and messages for those who cannot see it, in the language that is spoken. */
export const themeOf = (closeLabel: string) =>
  createTheme({
    primaryColor: 'iris',
    primaryShade: { light: 7, dark: 6 },
    colors: { iris, dark },
    autoContrast: true,
    respectReducedMotion: true,
    defaultRadius: 'md',
    cursorType: 'pointer',
    fontFamily: family,
    fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
    headings: { fontFamily: family, fontWeight: '600' },
    fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.25rem' },
    spacing: { xs: '0.5rem', sm: '0.75rem', md: '1rem', lg: '1.5rem', xl: '2rem' },
    radius: { sm: '4px', md: '8px', lg: '12px' },
    components: {
      Badge: { defaultProps: { tt: 'none', radius: 'sm', fw: 550 } },
      Button: { defaultProps: { size: 'sm' } },
      TextInput: { defaultProps: { size: 'sm' } },
      PasswordInput: { defaultProps: { size: 'sm' } },
      Select: { defaultProps: { size: 'sm', comboboxProps: { shadow: 'md' } } },
      Modal: {
        defaultProps: {
          centered: true,
          overlayProps: { backgroundOpacity: 0.5 },
          closeButtonProps: { 'aria-label': closeLabel },
        },
      },
      Drawer: { defaultProps: { position: 'right', size: 'lg', closeButtonProps: { 'aria-label': closeLabel } } },
      Notification: { defaultProps: { closeButtonProps: { 'aria-label': closeLabel } } },
      Tooltip: { defaultProps: { withArrow: true, openDelay: 250, events: { hover: true, focus: true, touch: true } } },
    },
  });
