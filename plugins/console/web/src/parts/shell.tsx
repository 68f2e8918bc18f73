/** The frame around all pages of a session: sidebar, header, content. */
import { AppShell, Burger, Group, ScrollArea, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { lazyRouteComponent, Outlet, useLocation } from '@tanstack/react-router';
import { lazy, Suspense, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { has, seesOperatorPages, useMe } from '../api/session.ts';
import { useSessionEnded } from '../api/session-end.ts';
import { LegalLinks, Logo } from './brand.tsx';
import { HeaderTools } from './header-tools.tsx';
import { Sidebar } from './sidebar.tsx';
import { Waiting } from './states.tsx';

/** Unlike a component made by `lazy`, it is drawn in the first frame once `preload` has loaded it. */
const AlertBanner = lazyRouteComponent(() => import('../pages/operator/alerts/alert-banner.tsx'));
const SignInAgain = lazy(() => import('../pages/entry/sign-in-again.tsx'));

/** Loads the banner and its alerts before the first page is drawn: a banner that comes later moves the page down. */
export async function loadBanner(): Promise<void> {
  try {
    await AlertBanner.preload?.();
    await (await import('../pages/operator/alerts/alert-banner.tsx')).loadAlerts();
  } catch {
    // The page is shown without a banner.
  }
}

export function Shell() {
  const { t } = useTranslation();
  const me = useMe();
  const [opened, menu] = useDisclosure(false);
  const { pathname } = useLocation();
  const ended = useSessionEnded();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu shuts when another page is opened
  useEffect(() => {
    menu.close();
  }, [pathname]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'md', sm: 'lg' }}
    >
      <a href="#content" className="skip-link">
        {t('shell.skip')}
      </a>
      <AppShell.Header className="header">
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap" miw={0}>
            <Burger opened={opened} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label={t('shell.menu')} />
            <Logo size={26} />
            <Text fw={650} truncate>
              {me.gateway.name}
            </Text>
          </Group>
          <Group gap={6} wrap="nowrap">
            {seesOperatorPages(me) && has(me, 'alerts') && (
              <Suspense>
                <AlertBanner />
              </Suspense>
            )}
            <HeaderTools />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className="navbar" aria-label={t('shell.mainNavigation')}>
        <AppShell.Section grow component={ScrollArea} type="scroll" p="xs">
          <Sidebar />
        </AppShell.Section>
        <AppShell.Section p="xs">
          <LegalLinks />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <div className="content">
          <Suspense fallback={<Waiting />}>
            <Outlet />
          </Suspense>
        </div>
      </AppShell.Main>
      {ended && (
        <Suspense>
          <SignInAgain />
        </Suspense>
      )}
    </AppShell>
  );
}
