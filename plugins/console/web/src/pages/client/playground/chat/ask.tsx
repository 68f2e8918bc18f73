/** Where the next question is written, with images beside it. */
import { Box, Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { IconPlayerStopFilled, IconSend } from '@tabler/icons-react';
import { type KeyboardEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { AddImage, Attached, useImages } from '../attach.tsx';

const mostImages = 4;

interface AskProps {
  /** Whether there is a key and a model. */
  readonly ready: boolean;
  readonly busy: boolean;
  readonly withImages: boolean;
  readonly isEmpty: boolean;
  readonly onAsk: (question: string, images: readonly string[]) => void;
  readonly onStop: () => void;
  readonly onReset: () => void;
}

export function Ask({ ready, busy, withImages, isEmpty, onAsk, onStop, onReset }: AskProps) {
  const { t } = useTranslation();
  const [draft, setDraft] = useState('');
  const { images, setImages, attach, tooLarge } = useImages(mostImages);
  const sendable = ready && draft.trim() !== '' && !busy;
  const send = () => {
    if (!sendable) return;
    onAsk(draft.trim(), withImages ? images : []);
    setDraft('');
    setImages([]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
  };
  return (
    <Box className="ask">
      <Stack gap="xs">
        {withImages && <Attached images={images} onChange={setImages} />}
        <Textarea
          aria-label={t('client.playground.message')}
          placeholder={t('client.playground.placeholder')}
          autosize
          minRows={2}
          maxRows={10}
          value={draft}
          error={tooLarge ? t('client.playground.imageTooLarge') : undefined}
          onChange={({ currentTarget }) => setDraft(currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <Group justify="space-between">
          <Group gap="xs">
            {withImages && <AddImage isFull={images.length >= mostImages} onFiles={(files) => void attach(files)} />}
            {isEmpty ? (
              <Text fz="xs" c="dimmed">
                {ready ? '' : t('client.playground.keyMissing')}
              </Text>
            ) : (
              <Button variant="subtle" color="gray" size="xs" onClick={onReset}>
                {t('client.playground.again')}
              </Button>
            )}
          </Group>
          {busy ? (
            <Button variant="default" leftSection={<IconPlayerStopFilled size={14} />} onClick={onStop}>
              {t('client.playground.stop')}
            </Button>
          ) : (
            <Button leftSection={<IconSend size={15} />} onClick={send} disabled={!sendable}>
              {t('client.playground.send')}
            </Button>
          )}
        </Group>
      </Stack>
    </Box>
  );
}
