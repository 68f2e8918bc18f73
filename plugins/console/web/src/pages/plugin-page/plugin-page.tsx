/** A page that a plugin adds: loads its module and lets it draw into an element of its own. */
import './plugin-page.css';
import { Alert, Button, Stack, useComputedColorScheme } from '@mantine/core';
import { IconAlertCircle } from '@tabler/icons-react';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { AdminPageConsole } from '../../../../../common/domain/admin/admin-pages.ts';
import { get, send } from '../../api/client.ts';
import { useMe } from '../../api/session.ts';
import type { Me } from '../../api/types.ts';
import { NotFound } from '../../parts/failure.tsx';
import { Page } from '../../parts/page.tsx';
import { inLanguage } from './own-text.ts';

export default function PluginPage() {
  const { pathname } = useLocation();
  const page = useMe().pages.find(({ path }) => path === pathname);
  if (page === undefined) return <NotFound />;
  return (
    <Page title={inLanguage(page.title)} hint={page.intro === null ? undefined : inLanguage(page.intro)}>
      <Mounted key={page.path} page={page} />
    </Page>
  );
}

function Mounted({ page }: { readonly page: Me['pages'][number] }) {
  const { t } = useTranslation();
  const place = useRef<HTMLDivElement>(null);
  const [attempt, setAttempt] = useState(0);
  const [fault, setFault] = useState<string>();
  const console = useConsole();
  useEffect(() => {
    setFault(undefined);
    const element = document.createElement('div');
    place.current!.append(element);
    let isOver = false;
    let unmount: unknown;
    const draw = async () => {
      // Another address for each attempt, since browsers cache failed imports.
      const loaded: { mount?: unknown } = await import(/* @vite-ignore */ `${page.module}?attempt=${attempt}`);
      if (isOver) return;
      if (typeof loaded.mount !== 'function') throw new Error('its module exports no function "mount"');
      unmount = await loaded.mount(element, console);
      if (isOver) end(unmount);
    };
    draw().catch((error: unknown) => {
      if (!isOver) setFault(error instanceof Error ? error.message : String(error));
    });
    return () => {
      isOver = true;
      end(unmount);
      element.remove();
    };
  }, [page.module, attempt, console]);
  return (
    <>
      {fault !== undefined && (
        <Alert
          color="red"
          variant="light"
          icon={<IconAlertCircle size={18} />}
          title={t('shell.pluginBroken', { page: page.name })}
        >
          <Stack gap="sm" align="flex-start">
            {fault}
            <Button size="xs" variant="default" onClick={() => setAttempt(attempt + 1)}>
              {t('shell.retry')}
            </Button>
          </Stack>
        </Alert>
      )}
      <div ref={place} className="plugin-page" hidden={fault !== undefined} />
    </>
  );
}

/** Errors while a page is left are ignored: it is not shown any more. */
function end(unmount: unknown): void {
  if (typeof unmount !== 'function') return;
  try {
    unmount();
  } catch (error) {
    globalThis.console.warn('a page of a plugin could not be ended', error);
  }
}

/** A new object when language or colours change, which draws the page again. */
function useConsole(): AdminPageConsole {
  const { language } = useTranslation().i18n;
  const colors = useComputedColorScheme('light');
  const navigate = useNavigate();
  const { role } = useMe();
  return useMemo(
    () => ({
      language,
      colors,
      role,
      request: (method, path, body) => (method === 'GET' ? get(path) : send(method, path, body)),
      open: (path) => void navigate({ to: path }),
    }),
    [language, colors, role, navigate],
  );
}
