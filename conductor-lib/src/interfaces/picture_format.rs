//! Formats of pictures of a machine's screen, told by what they begin with: BMCs that call a JPEG `application/octet-stream`
//! were seen.

/// How a picture of a screen is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PictureFormat {
    /// PNG (ISO/IEC 15948).
    Png,
    /// JPEG (ISO/IEC 10918).
    Jpeg,
}

impl PictureFormat {
    /// All of them.
    const ALL: [Self; 2] = [Self::Png, Self::Jpeg];

    /// That of a picture; nothing where it is none of these.
    pub fn of(picture: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| picture.starts_with(format.signature()))
    }

    /// That of a file, by the ending of its name.
    pub fn of_file(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        Self::ALL.into_iter().find(|format| format.ending() == ending)
    }

    /// What such pictures begin with.
    fn signature(self) -> &'static [u8] {
        match self {
            Self::Png => b"\x89PNG\r\n\x1a\n",
            Self::Jpeg => b"\xff\xd8\xff",
        }
    }

    /// The ending of the name of a file.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
        }
    }

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_what_pictures_begin_with_and_files_end_with() {
        for (picture, expected) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], Some(PictureFormat::Png)),
            (b"\xff\xd8\xff\xe0..JFIF", Some(PictureFormat::Jpeg)),
            (b"\x89PNG", None),
            (b"<html>", None),
            (b"", None),
        ] {
            let told = PictureFormat::of(picture);
            assert_eq!(told, expected, "{picture:?}");
            let file = told.map(|format| format!("n1.{}", format.ending()));
            assert_eq!(file.as_deref().and_then(PictureFormat::of_file), expected);
        }
        assert_eq!(PictureFormat::of_file("n1.tar.gz"), None);
        assert_eq!(PictureFormat::Jpeg.media_type(), "image/jpeg");
    }
}
