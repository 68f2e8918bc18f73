/** Starts the app: language, colours, queries, pages. */
import '@mantine/core/styles.css';
import './style.css';
import './tables.css';
import './charts.css';
import './public.css';
import './pages.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { lazy, StrictMode, Suspense, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { useTranslation } from 'react-i18next';
import { queries } from './api/session.ts';
import { nonce } from './nonce.ts';
import { router } from './router.tsx';
import { startTexts } from './texts/index.ts';
import { colorSchemeManager, themeOf } from './theme.ts';

const Toasts = lazy(() => import('./parts/toasts.tsx'));

function App() {
  const { t } = useTranslation();
  const closeLabel = t('shell.close');
  const theme = useMemo(() => themeOf(closeLabel), [closeLabel]);
  return (
    <MantineProvider
      theme={theme}
      colorSchemeManager={colorSchemeManager}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
      deduplicateInlineStyles
    >
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
        <Suspense>
          <Toasts />
        </Suspense>
      </QueryClientProvider>
    </MantineProvider>
  );
}

await startTexts();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
