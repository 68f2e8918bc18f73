/** Opens the search: by its button, by ⌘K or Ctrl K; `?` shows the keys. */
import { ActionIcon, Kbd, Text, UnstyledButton } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';

const Command = lazy(() => import('./command.tsx'));

export function CommandButton() {
  const { t } = useTranslation();
  const [mode, setMode] = useState<'search' | 'keys'>();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const wanted = modeOf(event);
      if (wanted === undefined) return;
      event.preventDefault();
      setMode(wanted);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <>
      <UnstyledButton className="command-button" visibleFrom="sm" onClick={() => setMode('search')}>
        <IconSearch size={14} aria-hidden />
        <Text span fz="xs" c="dimmed">
          {t('shell.command.title')}
        </Text>
        <Kbd size="xs">⌘K</Kbd>
      </UnstyledButton>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        hiddenFrom="sm"
        aria-label={t('shell.command.title')}
        onClick={() => setMode('search')}
      >
        <IconSearch size={18} stroke={1.7} />
      </ActionIcon>
      {mode !== undefined && (
        <Suspense>
          <Command mode={mode} onClose={() => setMode(undefined)} />
        </Suspense>
      )}
    </>
  );
}

function modeOf({ key, metaKey, ctrlKey, altKey, target }: KeyboardEvent): 'search' | 'keys' | undefined {
  if (key.toLowerCase() === 'k' && (metaKey || ctrlKey) && !altKey) return 'search';
  const isTyping =
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  return key === '?' && !isTyping && !metaKey && !ctrlKey ? 'keys' : undefined;
}
