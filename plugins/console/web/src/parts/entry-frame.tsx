/** The frame of the pages before one is signed in: a card in the middle, the gateway's name above it. */
import { Anchor, Box, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { useInfo } from '../api/session.ts';
import { LegalLinks, Logo } from './brand.tsx';
import { ColorsMenu, LanguageMenu } from './header-menus.tsx';

interface EntryFrameProps {
  readonly title: string;
  readonly hint?: ReactNode;
  readonly below?: ReactNode;
  readonly children: ReactNode;
}

export function EntryFrame({ title, hint, below, children }: EntryFrameProps) {
  const gateway = useInfo()?.gateway ?? '';
  useEffect(() => {
    document.title = gateway === '' ? title : `${title} · ${gateway}`;
  }, [title, gateway]);
  return (
    <Box className="entry">
      <Group className="entry-tools" gap={4}>
        <ColorsMenu />
        <LanguageMenu />
      </Group>
      <Stack component="main" className="entry-column" gap="lg">
        <Group gap="sm" justify="center">
          <Logo size={34} />
          <Text fz="lg" fw={650}>
            {gateway}
          </Text>
        </Group>
        <Paper withBorder className="panel entry-card">
          <Title order={1} fz={20} mb={hint === undefined ? 'md' : 4}>
            {title}
          </Title>
          {hint !== undefined && (
            <Text fz="sm" c="dimmed" mb="md">
              {hint}
            </Text>
          )}
          {children}
        </Paper>
        {below !== undefined && (
          <Text fz="sm" ta="center" component="div">
            {below}
          </Text>
        )}
        <LegalLinks />
      </Stack>
    </Box>
  );
}

interface TextLinkProps {
  readonly to: string;
  readonly search?: object;
  readonly small?: boolean;
  readonly children: ReactNode;
}

/** A link inside the app that looks like one. */
export function TextLink({ to, search = {}, small = false, children }: TextLinkProps) {
  return (
    <Anchor
      fz={small ? 'xs' : 'sm'}
      underline="always"
      renderRoot={(props) => <Link {...props} to={to} search={search} />}
    >
      {children}
    </Anchor>
  );
}
