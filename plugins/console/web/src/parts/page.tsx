/** The frame of a page's content: its heading, one sentence, actions at the right; and panels inside it. */
import { Box, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';
import { useInfo } from '../api/session.ts';

interface PageProps {
  readonly title: string;
  readonly hint?: ReactNode;
  readonly actions?: ReactNode;
  /** With less space between its parts, so that it fits on a screen. */
  readonly dense?: boolean;
  readonly children: ReactNode;
}

export function Page({ title, hint, actions, dense = false, children }: PageProps) {
  const gateway = useInfo()?.gateway;
  useEffect(() => {
    document.title = gateway === undefined ? title : `${title} · ${gateway}`;
  }, [title, gateway]);
  return (
    <Stack gap={dense ? 'sm' : 'lg'}>
      <Group justify="space-between" align="flex-end" gap="sm">
        <Box>
          <Title order={1} fz="xl" lh={1.4} tabIndex={-1}>
            {title}
          </Title>
          {hint !== undefined && (
            <Text c="dimmed" fz="sm" mt={2} maw={720}>
              {hint}
            </Text>
          )}
        </Box>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

interface PanelProps {
  readonly title?: ReactNode;
  readonly hint?: ReactNode;
  readonly actions?: ReactNode;
  /** Without a margin inside, for tables that reach the edge. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

/** A card with a heading. */
export function Panel({ title, hint, actions, flush = false, children }: PanelProps) {
  const headed = title !== undefined || actions !== undefined;
  return (
    <Paper component="section" withBorder className="panel">
      {headed && (
        <Group justify="space-between" gap="xs" px="md" pt="sm" pb={flush ? 'sm' : 0}>
          <Box>
            {title !== undefined && (
              <Title order={2} fz="md" lh={1.5} className="panel-title">
                {title}
              </Title>
            )}
            {hint !== undefined && (
              <Text c="dimmed" fz="xs">
                {hint}
              </Text>
            )}
          </Box>
          {actions !== undefined && <Group gap="xs">{actions}</Group>}
        </Group>
      )}
      {flush ? (
        children
      ) : (
        <Box p="md" pt={headed ? 'xs' : 'md'}>
          {children}
        </Box>
      )}
    </Paper>
  );
}
