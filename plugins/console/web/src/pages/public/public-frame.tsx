/** The frame of public pages: the gateway's name, the other such pages, ways in. */
import { Box, Button, Group, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { useInfo } from '../../api/session.ts';
import { LegalLinks, Logo } from '../../parts/brand.tsx';
import { TextLink } from '../../parts/entry-frame.tsx';
import { ColorsMenu, LanguageMenu } from '../../parts/header-menus.tsx';

export function PublicFrame({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  const { t } = useTranslation();
  const info = useInfo();
  const gateway = info?.gateway ?? '';
  useEffect(() => {
    document.title = gateway === '' ? title : `${title} · ${gateway}`;
  }, [title, gateway]);
  return (
    <Box className="public">
      <Group component="header" className="public-header" justify="space-between" wrap="nowrap" gap="xs">
        <Link to="/welcome" className="public-name">
          <Logo size={26} />
          <Text fw={650} truncate>
            {gateway}
          </Text>
        </Link>
        <Group gap={6} wrap="nowrap">
          {info?.public.status && <TextLink to="/status">{t('entry.status.title')}</TextLink>}
          <ColorsMenu />
          <Box visibleFrom="xs">
            <LanguageMenu />
          </Box>
          <Button size="xs" variant="default" renderRoot={(props) => <Link {...props} to="/sign-in" />}>
            {t('entry.signIn.title')}
          </Button>
          {info?.signUp === 'open' && (
            <Button size="xs" visibleFrom="xs" renderRoot={(props) => <Link {...props} to="/sign-up" />}>
              {t('entry.signUp.title')}
            </Button>
          )}
        </Group>
      </Group>
      <main className="public-main">{children}</main>
      <Box component="footer" pb="lg">
        <LegalLinks />
      </Box>
    </Box>
  );
}
